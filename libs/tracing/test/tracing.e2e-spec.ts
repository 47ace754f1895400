import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { createTestDatabase, engine, type TestDatabase } from '../../../test/support/database.js';
import { HttpClient } from '../../../test/support/http-client.js';
import { CLIENT, OtlpCollector, SERVER } from '../../../test/support/otlp-collector.js';
import { rawRequest } from '../../../test/support/raw-request.js';
import type { ServiceProcess } from '../../../test/support/service-process.js';
import { installWithChanged } from '../../../test/operation/support/changed-package.js';
import { Services } from '../../../test/operation/support/services.js';

/* Tracing by OpenTelemetry in processes of the service. */

// Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const BOOTSTRAP_API_KEY = 'key-of-the-traced-service';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';

let database: TestDatabase;
let collector: OtlpCollector;
const services = new Services(() => ({ ...database.settings, BOOTSTRAP_API_KEY }));

beforeAll(async () => (database = await createTestDatabase()));
beforeEach(async () => (collector = await OtlpCollector.start()));
afterEach(() => collector.close());
afterAll(() => database.drop());

const clientOf = async (service: ServiceProcess): Promise<HttpClient> =>
  new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);

test('without an endpoint nothing of OpenTelemetry but its API is loaded', async () => {
  // Node's coverage files list all scripts that a process has loaded, ES modules and CommonJS.
  const directory = join(services.home, 'coverage');
  const service = services.start({ OTEL_SERVICE_NAME: 'shop', NODE_V8_COVERAGE: directory });
  expect((await (await clientOf(service)).get('/v1/pets')).status).toBe(200);
  expect(await service.stop('SIGTERM')).toBe(0);
  const [file] = await readdir(directory);
  const { result } = JSON.parse(await readFile(join(directory, file as string), 'utf8')) as {
    result: { url: string }[];
  };
  expect(result.length).toBeGreaterThan(500);
  // prom-client always loads the API package.
  expect(result.filter(({ url }) => /\/bundle\/tracing\.js$|@opentelemetry\/(?!api\/)/.test(url))).toEqual([]);
});

test('without the packages the start is refused, and names the command that installs those of package.json', async () => {
  const installation = await mkdtemp(join(services.home, 'installation-'));
  const [modules = ''] = await installWithChanged('@opentelemetry/sdk-node', [], installation);
  await rm(join(installation, 'node_modules/@opentelemetry'), { recursive: true });
  const { peerDependencies } = JSON.parse(await readFile(join(installation, 'package.json'), 'utf8')) as {
    peerDependencies: Record<string, string>;
  };
  const packages = Object.entries(peerDependencies).filter(([name]) => name.startsWith('@opentelemetry/'));
  const command = ['npm install', ...packages.map((each) => each.join('@'))].join(' ');
  for (const program of [modules, join(installation, 'dist/bundle/main.js')]) {
    expect(await services.refusal(collector.settings, [program])).toBe(
      `petstore: OTEL_EXPORTER_OTLP_ENDPOINT needs packages that ${command} installs.`,
    );
  }
  const service = services.start({}, [modules]);
  expect((await (await clientOf(service)).get('/v1/pets')).status).toBe(200);
});

test('a request is a span named by its route, with a span of its statement below, and its trace id is in the log', async () => {
  const service = services.start({
    ...collector.settings,
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  });
  const client = await clientOf(service);
  const created = await client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  const headers = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`, 'x-request-id': 'found' };
  const path = `/v1/pets/${(created.json as { id: number }).id}?secret=word`;
  expect((await client.get(path, { headers })).status).toBe(200);
  const span = await collector.request('found');
  expect(span).toMatchObject({
    name: 'GET /v1/pets/{petId}',
    kind: SERVER,
    traceId: TRACE_ID,
    parentSpanId: PARENT_ID,
    status: { code: 0 },
    attributes: { 'http.route': '/v1/pets/{petId}', 'petstore.operation': 'getPet', 'http.response.status_code': 200 },
    resource: { 'service.name': 'petstore', 'deployment.environment.name': 'test' },
  });
  // The embedded engine has no connection.
  if (engine === 'postgresql') {
    // Another one may look the key up again.
    const [statement] = await collector.find(
      ({ name, parentSpanId }) => parentSpanId === span.spanId && name.startsWith('pg.query:pet_find'),
    );
    expect(statement).toMatchObject({ kind: CLIENT, traceId: TRACE_ID });
  }
  const { traceId } = await collector.request(created.headers['x-request-id']);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(service.stdout).toMatch(new RegExp(`"requestId":"found","traceId":"${TRACE_ID}"`));
  expect(service.stdout).toContain(`"traceId":"${traceId}"`);
  expect(JSON.stringify(collector.spans)).not.toMatch(/secret|key-of-the-traced/);
  // None of the trials of a start.
  const served = collector.spans.filter(({ kind }) => kind === SERVER);
  expect(served.map(({ name }) => name)).toEqual(['POST /v1/pets', 'GET /v1/pets/{petId}']);
});

test('concurrent and pipelined requests have spans of their own, and shared statements belong to one of them', async () => {
  const service = services.start(collector.settings);
  const client = await clientOf(service);
  const ids = Array.from({ length: 20 }, (_, index) => `together-${index}`);
  await Promise.all(ids.map((id) => client.get('/v1/pets', { headers: { 'x-request-id': id } })));
  const head = (id: string, parent: string): string =>
    `GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${BOOTSTRAP_API_KEY}\r\nX-Request-Id: ${id}\r\ntraceparent: 00-${TRACE_ID}-${parent}-01\r\n`;
  const sent = `${head('ahead-1', '1'.repeat(16))}\r\n${head('ahead-2', '2'.repeat(16))}Connection: close\r\n\r\n`;
  await rawRequest(Number(new URL(await service.origin()).port), sent);
  for (const id of ids) expect((await collector.request(id)).name).toBe('GET /v1/pets');
  for (const number of ['1', '2']) {
    const span = await collector.request(`ahead-${number}`);
    expect(span.parentSpanId).toBe(number.repeat(16));
    if (engine === 'postgresql') await collector.find(({ parentSpanId }) => parentSpanId === span.spanId);
  }
  expect(await service.stop('SIGTERM')).toBe(0);
  const known = new Set(collector.spans.map(({ spanId }) => spanId));
  const statements = collector.spans.filter(({ kind }) => kind === CLIENT);
  expect(statements.filter(({ parentSpanId }) => !known.has(String(parentSpanId)))).toEqual([]);
});

test('the span of a response 500 is an error, and a client error is none', async () => {
  const service = services.start(collector.settings);
  const client = await clientOf(service);
  await client.get('/v1/pets/9999999', { headers: { 'x-request-id': 'missing' } });
  expect(await collector.request('missing')).toMatchObject({
    status: { code: 0 },
    attributes: { 'petstore.error_code': 'pet_not_found' },
  });
  if (engine === 'embedded') return;
  const owner = new pg.Client({ connectionString: database.ownerSettings['DATABASE_URL'] });
  await owner.connect();
  await owner.query('ALTER TABLE pet RENAME TO pet_away');
  try {
    const failed = await client.get('/v1/pets', { headers: { 'x-request-id': 'failed' }, expects500: true });
    expect(failed.status).toBe(500);
  } finally {
    await owner.query('ALTER TABLE pet_away RENAME TO pet');
    await owner.end();
  }
  expect(await collector.request('failed')).toMatchObject({ name: 'GET /v1/pets', status: { code: 2 } });
});

test.each([
  ['hang', '500'],
  // Longer than the service waits for anything when it stops.
  ['hang', '60000'],
  ['refuse', '500'],
] as const)(
  'a collector that does not take spans (%s, for %s ms) fails neither requests nor the stop; OTEL_LOG_LEVEL prints why',
  async (mode, timeoutMs) => {
    collector.mode = mode;
    const service = services.start({
      ...collector.settings,
      OTEL_LOG_LEVEL: 'error',
      OTEL_EXPORTER_OTLP_TIMEOUT: timeoutMs,
    });
    const client = await clientOf(service);
    for (let count = 0; count < 20; count++) expect((await client.get('/v1/pets')).status).toBe(200);
    expect(await service.stop('SIGTERM')).toBe(0);
    if (timeoutMs === '500') expect(service.stderr).toMatch(/OTLPExporterError|Request timed out/);
    expect(service.stdout).not.toContain('"level":40');
  },
);
