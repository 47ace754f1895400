import { Ajv } from 'ajv';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';
import { type Config, readConfig } from '../../src/config.js';
import { commandOf, dockerfile } from './support/dockerfile.js';

/*
 * compose.yaml and ops/kubernetes are valid by their schemas, and their settings fit the service.
 */

import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');
const KUBERNETES = join(ROOT, 'ops/kubernetes');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

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

/** Checks that each name is a setting, and reads the settings as the service does. */
function configOf(environment: Record<string, string>): Config {
  expect(Object.keys(environment).filter((name) => !settings.has(name))).toEqual([]);
  return readConfig(environment);
}

describe('compose.yaml', () => {
  interface Service {
    image: string;
    command?: string[];
    environment?: Record<string, string>;
    ports?: string[];
    depends_on?: Record<string, { condition: string }>;
    healthcheck?: object;
    stop_grace_period?: string;
    read_only?: boolean;
    volumes?: string[];
  }

  const text = read('compose.yaml');
  const file = parse(text, { merge: true }) as { services: Record<string, Service> };
  const { petstore, migrate, postgres, redis } = file.services;
  /** The value of `${NAME:-default}` when nothing is set. */
  const withDefaults = (value: string): string => value.replace(/\$\{\w+:-([^}]*)\}/g, '$1');
  const environmentOf = (service?: Service): Record<string, string> =>
    Object.fromEntries(Object.entries(service?.environment ?? {}).map(([name, value]) => [name, withDefaults(value)]));

  test('is valid by the schema of the Compose specification', () => {
    // The schema that dclint ships is the one of https://github.com/compose-spec/compose-spec.
    const schema = JSON.parse(read('node_modules/dclint/schemas/compose.schema.json')) as { $schema?: string };
    const validate = new Ajv({ strict: false, validateFormats: false }).compile({ ...schema, $schema: undefined });
    const check = (value: unknown): unknown => (validate(value) ? [] : validate.errors);
    expect(check(file)).toEqual([]);
    expect(check({ services: { petstore: { ...petstore, read_onyl: true } } })).not.toEqual([]);
  });

  test('service and migration have settings that the service accepts', () => {
    const config = configOf(environmentOf(petstore));
    expect(config.databaseUrl).toBe('postgresql://petstore:petstore@postgres:5432/petstore');
    expect(config.redisUrl).toBe('redis://redis:6379/0');
    expect(configOf(environmentOf(migrate)).databaseUrl).toBe(config.databaseUrl);
    expect(environmentOf(postgres)).toEqual({
      POSTGRES_DB: 'petstore',
      POSTGRES_USER: 'petstore',
      POSTGRES_PASSWORD: 'petstore',
    });
  });

  test('service and migration run the image of the version of package.json', () => {
    expect([petstore?.image, migrate?.image]).toEqual([`petstore:${version}`, `petstore:${version}`]);
    expect(migrate?.command).toEqual(['dist/src/cli.js', 'migrate']);
    expect(petstore?.command).toBeUndefined();
  });

  test('the service starts when the schema is migrated and its servers are healthy', () => {
    expect(petstore?.depends_on).toEqual({
      migrate: { condition: 'service_completed_successfully' },
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    });
    expect(migrate?.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
    expect([postgres?.healthcheck, redis?.healthcheck]).toEqual([expect.any(Object), expect.any(Object)]);
  });

  test('publishes only the port of the service, and only to this machine', () => {
    const { port } = configOf(environmentOf(petstore));
    expect(petstore?.ports).toEqual([`127.0.0.1:${port}:${port}`]);
    expect([migrate?.ports, postgres?.ports, redis?.ports]).toEqual([undefined, undefined, undefined]);
    expect(dockerfile().find(({ name }) => name === 'EXPOSE')?.text).toBe(String(port));
  });

  test('the service has a read-only file system, and time for its shutdown', () => {
    expect([petstore?.read_only, migrate?.read_only]).toEqual([true, true]);
    expect(petstore?.volumes).toBeUndefined();
    const { shutdownDelayMs, shutdownTimeoutMs } = configOf(environmentOf(petstore));
    const graceMs = Number(petstore?.stop_grace_period?.replace(/s$/, '')) * 1000;
    expect(graceMs).toBeGreaterThan(shutdownDelayMs + shutdownTimeoutMs + CLOSING_MS);
  });
});

interface Rule {
  ports: { protocol: string; port: number }[];
}
interface Pod {
  automountServiceAccountToken: boolean;
  terminationGracePeriodSeconds: number;
  securityContext: { runAsUser: number; runAsGroup: number };
  topologySpreadConstraints: { labelSelector: { matchLabels: object } }[];
  containers: (Record<string, { httpGet: object; periodSeconds: number; failureThreshold: number }> & {
    image: string;
    args: string[];
    env?: object;
    envFrom: object[];
    lifecycle?: object;
    ports: object[];
    resources: { limits: { memory?: string } };
    securityContext: object;
  })[];
}
/** The members that the tests read. The types of the Kubernetes API, which check all members, make most of them optional. */
interface Manifest {
  path: string;
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  /** Only in a kustomization. */
  resources: string[];
  images: object[];
  data: Record<string, string>;
  stringData: Record<string, string>;
  spec: {
    template: { metadata: { labels: object }; spec: Pod };
    strategy: { rollingUpdate: { maxSurge: number; maxUnavailable: number } };
    selector: { matchLabels: object };
    podSelector: { matchLabels: object };
    ports: object[];
    ingress: Rule[];
    egress: Rule[];
    minReplicas: number;
    maxReplicas: number;
    maxUnavailable: number;
    scaleTargetRef: object;
  };
}

describe('ops/kubernetes', () => {
  const files = readdirSync(KUBERNETES, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.yaml'));
  const manifests = files.flatMap((path) =>
    parseAllDocuments(readFileSync(join(KUBERNETES, path), 'utf8')).map((document) => {
      expect(document.errors).toEqual([]);
      return { ...(document.toJS() as Manifest), path };
    }),
  );
  function find(kind: string, name = 'petstore'): Manifest {
    const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
    if (!found) throw new Error(`There is no ${kind} ${name}.`);
    return found;
  }

  /** The module of `kubernetes-types` that declares a kind of an API. */
  const MODULES: Record<string, string> = {
    v1: 'core/v1',
    'apps/v1': 'apps/v1',
    'batch/v1': 'batch/v1',
    'autoscaling/v2': 'autoscaling/v2',
    'policy/v1': 'policy/v1',
    'networking.k8s.io/v1': 'networking/v1',
  };

  /** Faults that the types of the Kubernetes API find in manifests; the types know every member. */
  function faultsOf(objects: readonly { apiVersion: string; kind: string }[]): string[] {
    const lines = objects.map(({ apiVersion, kind, ...rest }, index) => {
      const type = `import('kubernetes-types/${MODULES[apiVersion]}').${kind}`;
      return `export const m${index}: ${type} = ${JSON.stringify({ apiVersion, kind, ...rest })};`;
    });
    const name = join(ROOT, 'test/ship/manifests-as-types.ts');
    const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es2023.d.ts'] };
    const host = ts.createCompilerHost(options);
    const readSource = host.getSourceFile.bind(host);
    host.getSourceFile = (path, ...rest) =>
      path === name ? ts.createSourceFile(path, lines.join('\n'), ts.ScriptTarget.ES2023) : readSource(path, ...rest);
    const program = ts.createProgram(
      [name],
      { ...options, module: ts.ModuleKind.Preserve, moduleResolution: ts.ModuleResolutionKind.Bundler },
      host,
    );
    return ts
      .getPreEmitDiagnostics(program)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  }

  const objects = manifests.filter(({ kind }) => kind !== 'Kustomization');
  const plain = objects.map(({ path: _, ...manifest }) => manifest);

  test('every object matches the types of the Kubernetes API', () => {
    expect(plain.length).toBeGreaterThan(8);
    expect(faultsOf(plain)).toEqual([]);
    const { path: _, ...deployment } = find('Deployment');
    const changed = (spec: object): object => ({ ...deployment, spec: { ...deployment.spec, ...spec } });
    expect(faultsOf([changed({ replica: 3 }) as Manifest]).join()).toContain('replica"\' does not exist');
    expect(faultsOf([changed({ replicas: '3' }) as Manifest])).not.toEqual([]);
  });

  test('each file is a resource of a kustomization, except the example of secrets', () => {
    const listed = manifests
      .filter(({ kind }) => kind === 'Kustomization')
      .flatMap(({ path, resources }) => resources.map((name) => join(dirname(path), name)));
    const expected = objects.map(({ path }) => path).filter((path) => path !== 'secret.example.yaml');
    expect([...listed].sort()).toEqual([...new Set(expected)].sort());
  });

  test('service and migration run the version of package.json', () => {
    const images = manifests.filter(({ kind }) => kind === 'Kustomization').map(({ images }) => images);
    const image = { name: 'petstore', newName: 'registry.example.com/petstore', newTag: version };
    expect(images).toEqual([[image], [image]]);
    for (const owner of [find('Deployment'), find('Job', 'petstore-migrate')]) {
      expect(owner.spec.template.spec.containers.map((item) => item.image)).toEqual(['petstore']);
    }
  });

  const environment = { ...find('ConfigMap').data, ...find('Secret').stringData };
  const pod = find('Deployment').spec.template.spec;
  const [container] = pod.containers as [Pod['containers'][number]];
  const job = find('Job', 'petstore-migrate').spec.template.spec;

  test('the service accepts all settings, and its pods take them from the right ConfigMap and Secret', () => {
    const config = configOf(environment);
    expect(container.envFrom).toEqual([{ configMapRef: { name: 'petstore' } }, { secretRef: { name: 'petstore' } }]);
    expect(container.env).toBeUndefined();
    expect(config.databaseUrl).toContain('petstore_service');
    expect(config.publicBaseUrl).toBe('https://petstore.example.com/v1');
    expect(job.containers[0]?.envFrom).toEqual([{ secretRef: { name: 'petstore-owner' } }]);
    expect(job.containers[0]?.args).toEqual(['dist/src/cli.js', 'migrate']);
    expect(configOf(find('Secret', 'petstore-owner').stringData).databaseUrl).toContain('petstore_owner');
  });

  test('pod, Service and network policy use the ports of the service and of its servers', () => {
    const { port, databaseUrl = '', redisUrl = '' } = configOf(environment);
    expect(container.ports).toEqual([{ name: 'http', containerPort: port }]);
    expect(find('Service').spec.ports).toEqual([{ name: 'http', port: 80, targetPort: 'http' }]);
    const { ingress, egress } = find('NetworkPolicy').spec;
    const portsOf = (rules: Rule[]): number[] => rules.flatMap(({ ports }) => ports.map((item) => item.port));
    expect(portsOf(ingress)).toEqual([port]);
    const outgoing = portsOf(egress);
    expect(outgoing).toEqual([53, 53, Number(new URL(databaseUrl).port), Number(new URL(redisUrl).port)]);
  });

  test('only readiness depends on the database: restarts follow /health/live', () => {
    const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => container[name]?.httpGet);
    expect(paths).toEqual([
      { path: '/health/live', port: 'http' },
      { path: '/health/live', port: 'http' },
      { path: '/health/ready', port: 'http' },
    ]);
    expect(commandOf('HEALTHCHECK').join(' ')).toContain('/health/live`');
  });

  test('an instance has time to leave the load balancer, to finish its requests, and to close', () => {
    const { shutdownDelayMs, shutdownTimeoutMs } = configOf(environment);
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(shutdownDelayMs + shutdownTimeoutMs + CLOSING_MS);
    const { periodSeconds = 0, failureThreshold = 0 } = container.readinessProbe ?? {};
    expect(shutdownDelayMs).toBeGreaterThan(periodSeconds * (failureThreshold + 1) * 1000);
    expect(container.lifecycle).toBeUndefined();
  });

  test('the connections of all instances fit into one PostgreSQL, also during a rolling update', () => {
    const { databasePoolSize, webConcurrency } = configOf(environment);
    const { maxReplicas, minReplicas } = find('HorizontalPodAutoscaler').spec;
    const { maxSurge, maxUnavailable } = find('Deployment').spec.strategy.rollingUpdate;
    const connections = (maxReplicas + maxSurge) * webConcurrency * (databasePoolSize + BESIDE_POOL);
    expect(connections).toBeLessThanOrEqual(CONNECTIONS);
    expect([maxUnavailable, minReplicas > find('PodDisruptionBudget').spec.maxUnavailable]).toEqual([0, true]);
  });

  test('the selectors match the pods of the service, and the network policy also that of the migration', () => {
    const labels = find('Deployment').spec.template.metadata.labels;
    expect(find('Deployment').spec.selector.matchLabels).toEqual(labels);
    expect(find('Service').spec.selector).toEqual(labels);
    expect(find('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels);
    for (const { labelSelector } of pod.topologySpreadConstraints) expect(labelSelector.matchLabels).toEqual(labels);
    const chosen = find('NetworkPolicy').spec.podSelector.matchLabels;
    expect(labels).toMatchObject(chosen);
    expect(find('Job', 'petstore-migrate').spec.template.metadata.labels).toMatchObject(chosen);
    expect(find('HorizontalPodAutoscaler').spec.scaleTargetRef).toEqual({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'petstore',
    });
  });

  test('no pod runs as root, writes to its image, has kernel capabilities or gets a token of the cluster', () => {
    const user = dockerfile().findLast(({ name }) => name === 'USER')?.text;
    for (const spec of [pod, job]) {
      expect(spec.automountServiceAccountToken).toBe(false);
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(`${spec.securityContext.runAsUser}:${spec.securityContext.runAsGroup}`).toBe(user);
      expect(spec.containers[0]?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(spec.containers[0]?.resources.limits.memory).toBeDefined();
    }
  });
});
