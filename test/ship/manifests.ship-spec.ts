import { Ajv } from 'ajv';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig, type PetStoreConfig } from '../support/config.js';
import { commandOf, dockerfile } from './support/dockerfile.js';

/*
 * compose.yaml and ops/kubernetes are valid by their schemas, and their settings fit the service. kubernetes-types has no types of
 * the Prometheus operator: its two objects are compared with what they must agree with.
 */

import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');
const KUBERNETES = 'ops/kubernetes';
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const readEnv = (path: string): Record<string, string> => parseEnv(read(path)) as Record<string, string>;

/** Time in ms that closing may take after SHUTDOWN_TIMEOUT_MS: CLOSE_TIMEOUT_MS and the log's 2 s, rounded up. */
const CLOSING_MS = 6_000;
/** Connections that PostgreSQL has by default, without those reserved for superusers. */
const CONNECTIONS = 97;
/** Connections of a process outside its pool: one listens for changes of keys, one probes the database. */
const BESIDE_POOL = 2;

const { version } = JSON.parse(read('package.json')) as { version: string };

/** The names of the settings that `readConfig` reads. */
const settings = new Set<string>();
readConfig(new Proxy({}, { get: (_, name) => void settings.add(String(name)) }));

/** Checks that each name is a setting, and reads the settings as the service does, those of parts, too. */
function configOf(environment: Record<string, string>): PetStoreConfig & { redisUrl?: string } {
  expect(Object.keys(environment).filter((name) => !settings.has(name))).toEqual([]);
  const config: object = readConfig(environment);
  return config as ReturnType<typeof configOf>;
}

describe('compose.yaml', () => {
  interface Service {
    environment?: Record<string, string>;
    stop_grace_period?: string;
  }
  /** The file as Compose reads it with these variables. Throws the sentence of one that is missing. */
  function composed(variables: Record<string, string>): { services: Record<string, Service> } {
    const valueOf = (_: string, name: string, kind?: string, word = ''): string => {
      if (variables[name] !== undefined) return variables[name];
      if (kind === '-') return word;
      throw new Error(kind === '?' ? word : `${name} is unset, and nothing says so.`);
    };
    const text = read('compose.yaml').replace(/^ *#.*$/gm, '');
    return parse(text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, valueOf), { merge: true }) as ReturnType<
      typeof composed
    >;
  }
  const file = composed({ POSTGRES_PASSWORD: 'of-postgres', REDIS_PASSWORD: 'of-redis' });
  const { petstore, migrate, postgres, redis } = file.services;
  const config = configOf(petstore?.environment ?? {});

  test('is valid by the schema of the Compose specification', () => {
    // The schema that dclint ships is the one of https://github.com/compose-spec/compose-spec.
    const schema = JSON.parse(read('node_modules/dclint/schemas/compose.schema.json')) as { $schema?: string };
    const validate = new Ajv({ strict: false, validateFormats: false }).compile({ ...schema, $schema: undefined });
    expect([validate(file), validate.errors]).toEqual([true, null]);
    expect(validate({ services: { petstore: { ...petstore, read_onyl: true } } })).toBe(false);
  });

  test('the service and its migration run this version, unable to write, once their servers are healthy', () => {
    expect(config.databaseUrl).toBe('postgresql://petstore:of-postgres@postgres:5432/petstore');
    expect(config).toMatchObject({ redisUrl: 'redis://:of-redis@redis:6379/0' });
    expect(configOf(migrate?.environment ?? {}).databaseUrl).toBe(config.databaseUrl);
    const names = { POSTGRES_DB: 'petstore', POSTGRES_USER: 'petstore', POSTGRES_PASSWORD: 'of-postgres' };
    expect(postgres?.environment).toEqual(names);
    const image = { image: `petstore:${version}`, read_only: true };
    const healthy = { condition: 'service_healthy' };
    const command = ['dist/src/cli.js', 'migrate'];
    expect(migrate).toMatchObject({ ...image, command, depends_on: { postgres: healthy } });
    const done = { condition: 'service_completed_successfully' };
    expect(petstore).toMatchObject({ ...image, depends_on: { migrate: done, postgres: healthy, redis: healthy } });
    const pinned = expect.stringMatching(/@sha256:[\da-f]{64}$/) as string;
    for (const server of [postgres, redis]) {
      expect(server).toMatchObject({ image: pinned, healthcheck: { test: expect.anything() as unknown } });
    }
    expect(dockerfile()[0]?.text).toEqual(pinned);
  });

  test('there are no default passwords: without one, Compose says which is missing; Redis asks for its own', () => {
    const where = 'in the environment or in .env, such as';
    expect(() => composed({})).toThrow(`Set POSTGRES_PASSWORD ${where}`);
    expect(() => composed({ POSTGRES_PASSWORD: 'x' })).toThrow(`Set REDIS_PASSWORD ${where}`);
    expect(redis).toMatchObject({
      command: expect.arrayContaining(['--requirepass', 'of-redis']) as unknown,
      environment: { REDISCLI_AUTH: 'of-redis' },
    });
  });

  test('publishes only the port of the service, and only to this machine', () => {
    expect(petstore).toHaveProperty('ports', [`127.0.0.1:${config.port}:${config.port}`]);
    for (const other of [migrate, postgres, redis]) expect(other).not.toHaveProperty('ports');
    expect(dockerfile().find(({ name }) => name === 'EXPOSE')?.text).toBe(String(config.port));
  });

  test('the service has time for its shutdown', () => {
    const graceMs = Number(petstore?.stop_grace_period?.replace(/s$/, '')) * 1000;
    expect(graceMs).toBeGreaterThan(config.shutdownDelayMs + config.shutdownTimeoutMs + CLOSING_MS);
  });
});

/** An object of Kubernetes or a kustomization. */
interface Manifest {
  path: string;
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels: object };
  namespace: string;
  resources: string[];
  images?: object[];
  configMapGenerator?: { name: string; envs: string[] }[];
  stringData: Record<string, string>;
  /** The types of the Kubernetes API check it. */
  spec: any;
}

describe('ops/kubernetes', () => {
  const files = readdirSync(join(ROOT, KUBERNETES), { recursive: true, encoding: 'utf8' });
  const manifests = files
    .filter((path) => path.endsWith('.yaml'))
    .flatMap((path) =>
      parseAllDocuments(read(join(KUBERNETES, path))).map((document) => {
        expect([path, document.errors]).toEqual([path, []]);
        return { path, ...(document.toJS() as Omit<Manifest, 'path'>) };
      }),
    );
  function find(kind: string, name = 'petstore'): Manifest {
    const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
    if (!found) throw new Error(`There is no ${kind} ${name}.`);
    return found;
  }
  const kustomizations = manifests.filter(({ kind }) => kind === 'Kustomization');
  const objects = manifests.filter(({ kind }) => kind !== 'Kustomization');

  /** Faults that the types of the Kubernetes API find in manifests; the types know every member. */
  function faultsOf(checked: readonly Manifest[]): string[] {
    const modules: Record<string, string> = { v1: 'core/v1', 'networking.k8s.io/v1': 'networking/v1' };
    const lines = checked.map(({ path: _, ...manifest }, index) => {
      const { apiVersion, kind } = manifest;
      const type = `import('kubernetes-types/${modules[apiVersion] ?? apiVersion}').${kind}`;
      return `export const m${index}: ${type} = ${JSON.stringify(manifest)};`;
    });
    const name = join(ROOT, 'test/ship/manifests-as-types.ts');
    const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es2023.d.ts'] };
    const host = ts.createCompilerHost(options);
    const readSource = host.getSourceFile.bind(host);
    host.getSourceFile = (path, ...rest) =>
      path === name ? ts.createSourceFile(path, lines.join('\n'), ts.ScriptTarget.ES2023) : readSource(path, ...rest);
    const module = { module: ts.ModuleKind.Preserve, moduleResolution: ts.ModuleResolutionKind.Bundler };
    const diagnostics = ts.getPreEmitDiagnostics(ts.createProgram([name], { ...options, ...module }, host));
    return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  }

  test('every object matches the types of the Kubernetes API', () => {
    const known = objects.filter(({ apiVersion }) => !apiVersion.startsWith('monitoring.coreos.com/'));
    expect(known.length).toBeGreaterThan(8);
    expect(faultsOf(known)).toEqual([]);
    const deployment = find('Deployment');
    const wrong = { ...deployment, spec: { ...deployment.spec, replica: 3 } };
    expect(faultsOf([wrong]).join()).toContain('replica"\' does not exist');
  });

  test('a kustomization lists each file except those applied first, and runs the version of package.json', () => {
    const listed = kustomizations.flatMap(({ path, resources }) => resources.map((name) => join(dirname(path), name)));
    const first = ['namespace.yaml', 'secret.example.yaml'];
    expect([...listed, ...first].sort()).toEqual([...new Set(objects.map(({ path }) => path))].sort());
    const image = { name: 'petstore', newName: 'registry.example.com/petstore', newTag: version };
    expect(kustomizations.flatMap(({ images }) => images ?? [])).toEqual([image, image]);
    for (const { namespace } of kustomizations) expect(namespace).toBe(find('Namespace').metadata.name);
  });

  test('a release has the image by its digest, and the runbook where it is, in place of the examples', () => {
    const copy = mkdtempSync(join(tmpdir(), 'petstore-manifests-'));
    cpSync(join(ROOT, 'ops'), join(copy, 'ops'), { recursive: true });
    const run = (image: string): ReturnType<typeof spawnSync> => {
      const script = join(ROOT, 'scripts/release-manifests.js');
      return spawnSync(process.execPath, [script, image, 'https://git.example/docs'], { cwd: copy, encoding: 'utf8' });
    };
    const refused = run('ghcr.io/acme/petstore:2.0.0');
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('Give the image by its digest')]);
    const digest = `sha256:${'0a'.repeat(32)}`;
    expect(run(`ghcr.io/acme/petstore@${digest}`).status).toBe(0);
    const text = (path: string): string => readFileSync(join(copy, 'ops', path), 'utf8');
    for (const folder of ['', 'migrate/']) {
      const { images } = parse(text(`kubernetes/${folder}kustomization.yaml`)) as Manifest;
      expect(images).toEqual([{ name: 'petstore', newName: 'ghcr.io/acme/petstore', digest }]);
    }
    for (const path of ['prometheus/alerts.yaml', 'kubernetes/monitoring/prometheus-rule.yaml']) {
      expect(text(path)).toContain('runbook_url: https://git.example/docs/operating.md#petstoredown');
      expect(text(path)).not.toContain('example.com');
    }
    rmSync(copy, { recursive: true });
  });

  test('with the operator, Prometheus scrapes the pods by METRICS_TOKEN as the job of the alerts, which are those of ops/prometheus', () => {
    const { spec } = find('PodMonitor');
    const pods = find('Deployment').spec.template;
    expect(spec.selector.matchLabels).toEqual(pods.metadata.labels);
    expect(pods.metadata.labels).toHaveProperty([spec.jobLabel], 'petstore');
    const authorization = { credentials: { name: 'petstore', key: 'METRICS_TOKEN' } };
    expect(spec.podMetricsEndpoints).toEqual([{ port: 'http', path: '/metrics', interval: '15s', authorization }]);
    expect(find('Secret').stringData).toHaveProperty('METRICS_TOKEN');
    expect(find('PrometheusRule').spec).toEqual(parse(read('ops/prometheus/alerts.yaml')));
  });

  /** The settings that the generated ConfigMap has. */
  const generated = kustomizations.flatMap(({ configMapGenerator }) => configMapGenerator ?? []);
  const data = generated.flatMap(({ envs }) => envs.map((name) => readEnv(join(KUBERNETES, name))));
  const config = configOf(Object.assign({}, ...data, find('Secret').stringData) as Record<string, string>);
  const deployment = find('Deployment').spec;
  const pod = deployment.template.spec;
  const [container] = pod.containers;
  const { labels } = deployment.template.metadata;
  const migration = find('Job', 'petstore-migrate').spec.template;

  test('the service accepts all settings, and its pods take them from the right ConfigMap and Secret', () => {
    const envFrom = [{ configMapRef: { name: 'petstore' } }, { secretRef: { name: 'petstore' } }];
    expect(container).toMatchObject({ image: 'petstore', envFrom });
    expect(generated.map(({ name }) => name)).toEqual(['petstore']);
    expect(container).not.toHaveProperty('env');
    expect(config.databaseUrl).toContain('petstore_service');
    expect(config.publicBaseUrl).toBe('https://petstore.example.com/v1');
    expect(migration.spec.containers).toMatchObject([
      { image: 'petstore', args: ['dist/src/cli.js', 'migrate'], envFrom: [{ secretRef: { name: 'petstore-owner' } }] },
    ]);
    expect(configOf(find('Secret', 'petstore-owner').stringData).databaseUrl).toContain('petstore_owner');
  });

  test('pod, Service and network policy use the ports of the service and of its servers', () => {
    const { port, databaseUrl = '', redisUrl = '' } = config;
    // The settings of the service with ops/patroni.
    const { DATABASE_URL = '' } = readEnv('ops/patroni/haproxy.env');
    expect(container).toHaveProperty('ports', [{ name: 'http', containerPort: port }]);
    expect(find('Service').spec).toMatchObject({ ports: [{ name: 'http', port: 80, targetPort: 'http' }] });
    const [database, proxy, redis] = [databaseUrl, DATABASE_URL, redisUrl].map((url) => Number(new URL(url).port));
    // PgBouncer has the second one by default.
    const servers = [database, 6432, proxy, redis].map((server) => ({ port: server }));
    expect(find('NetworkPolicy').spec).toMatchObject({
      ingress: [{ ports: [{ port }] }],
      egress: [{ ports: [{ port: 53 }, { port: 53 }] }, { ports: servers }],
    });
  });

  test('only readiness depends on the database: restarts follow /health/live', () => {
    const [live, ready] = ['/health/live', '/health/ready'].map((path) => ({ httpGet: { path, port: 'http' } }));
    expect(container).toMatchObject({ startupProbe: live, livenessProbe: live, readinessProbe: ready });
    expect(commandOf('HEALTHCHECK').join(' ')).toContain('/health/live`');
  });

  test('an instance has time to leave the load balancer, to finish its requests, and to close', () => {
    const { shutdownDelayMs, shutdownTimeoutMs } = config;
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(shutdownDelayMs + shutdownTimeoutMs + CLOSING_MS);
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(shutdownDelayMs).toBeGreaterThan(periodSeconds * (failureThreshold + 1) * 1000);
  });

  test('the connections of all instances fit into one PostgreSQL, also during a rolling update', () => {
    const { maxReplicas, minReplicas } = find('HorizontalPodAutoscaler').spec;
    const { maxSurge, maxUnavailable } = deployment.strategy.rollingUpdate;
    const connections = (maxReplicas + maxSurge) * (config.databasePoolSize + BESIDE_POOL);
    expect(connections).toBeLessThanOrEqual(CONNECTIONS);
    expect(find('PodDisruptionBudget').spec).toHaveProperty('unhealthyPodEvictionPolicy', 'AlwaysAllow');
    expect([maxUnavailable, minReplicas > find('PodDisruptionBudget').spec.maxUnavailable]).toEqual([0, true]);
  });

  test('the selectors match the pods of the service, and the network policy also that of the migration', () => {
    expect(find('Service').spec).toHaveProperty('selector', labels);
    for (const owner of ['Deployment', 'PodDisruptionBudget']) {
      expect(find(owner).spec).toHaveProperty('selector.matchLabels', labels);
    }
    for (const { labelSelector } of pod.topologySpreadConstraints) {
      expect(labelSelector).toEqual({ matchLabels: labels });
    }
    for (const each of [labels, migration.metadata.labels]) {
      expect(each).toMatchObject(find('NetworkPolicy').spec.podSelector.matchLabels);
    }
    // One instance at a time leaves, and the next one when it has ended.
    const { policies } = find('HorizontalPodAutoscaler').spec.behavior.scaleDown;
    expect(policies).toMatchObject([{ value: 1 }]);
    expect(policies[0].periodSeconds).toBeGreaterThan(pod.terminationGracePeriodSeconds as number);
    const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'petstore' };
    expect(find('HorizontalPodAutoscaler').spec).toMatchObject({ scaleTargetRef });
  });

  test('no pod runs as root, writes to its image, has kernel capabilities or gets a token of the cluster', () => {
    const user = dockerfile().findLast(({ name }) => name === 'USER')?.text ?? '';
    const [runAsUser, runAsGroup] = user.split(':').map(Number);
    const capabilities = { drop: ['ALL'] };
    const securityContext = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities };
    const text = expect.any(String) as string;
    const resources = { requests: { 'ephemeral-storage': text }, limits: { memory: text, 'ephemeral-storage': text } };
    expect(find('Namespace').metadata.labels).toHaveProperty(['pod-security.kubernetes.io/enforce'], 'restricted');
    for (const spec of [pod, migration.spec]) {
      expect(spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser, runAsGroup, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [{ securityContext, resources }],
      });
    }
  });
});
