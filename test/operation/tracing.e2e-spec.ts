import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { CLIENT, OtlpCollector, type ReceivedSpan, SERVER } from '../support/otlp-collector.js';
import type { ServiceProcess } from '../support/service-process.js';
import { Services } from './support/services.js';

/* Tracing in processes of the service: which packages it loads, spans at the stop, collectors, other SDKs, groups. */

// Each start takes a second, or many on a busy machine.
import.meta.jest.setTimeout(120_000);

const ROOT = new URL('../..', import.meta.url).pathname;
const MAIN = join(ROOT, 'dist/src/main.js');
const BOOTSTRAP_API_KEY = 'key-of-the-traced-service';

let home: string;
let database: TestDatabase;
let collector: OtlpCollector;
let services: Services;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-tracing-'));
  database = await createTestDatabase();
  services = new Services(home, { ...database.settings, BOOTSTRAP_API_KEY, SHUTDOWN_LINGER_MS: '0' });
});
beforeEach(async () => {
  collector = await OtlpCollector.start();
});
afterEach(async () => {
  await services.kill();
  await collector.close();
});
afterAll(async () => {
  await database.drop();
  await rm(home, { recursive: true });
});

async function list(service: ServiceProcess): Promise<void> {
  expect((await new HttpClient(await service.origin(), BOOTSTRAP_API_KEY).get('/v1/pets')).status).toBe(200);
}

test('without an endpoint no tracing code is loaded; with one, only the exporter of its protocol', async () => {
  // Node's coverage files list all scripts that a process has loaded, ES modules and CommonJS.
  const imports = async (name: string, settings: Record<string, string>): Promise<string[]> => {
    const directory = join(home, name);
    const service = services.start({ ...settings, NODE_V8_COVERAGE: directory });
    await list(service);
    expect(await service.stop('SIGTERM')).toBe(0);
    const [file] = await readdir(directory);
    const { result } = JSON.parse(await readFile(join(directory, file as string), 'utf8')) as {
      result: { url: string }[];
    };
    expect(result.length).toBeGreaterThan(500);
    // prom-client always loads the API package.
    return result.map(({ url }) => url).filter((url) => /\/platform\/tracing\/|@opentelemetry\/(?!api\/)/.test(url));
  };
  const untraced = await imports('untraced', { OTEL_SERVICE_NAME: 'shop', OTEL_TRACES_SAMPLER: 'always_on' });
  expect(untraced.map((url) => url.split('/').at(-1))).toEqual(['tracing.module.js']);
  const traced = (await imports('traced', collector.settings)).join('\n');
  expect(traced).toContain('@opentelemetry/sdk-trace/');
  expect(traced).toContain('exporter-trace-otlp-http/');
  expect(traced).not.toContain('exporter-trace-otlp-proto/');
});

test('the stop sends the buffered spans, by default as protobuf', async () => {
  const service = services.start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '600000' });
  await list(service);
  expect(collector.exports).toEqual([]);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(collector.exports.map(({ headers }) => headers['content-type'])).toEqual(['application/x-protobuf']);
  expect(collector.exports[0]?.body.toString('latin1')).toContain('GET /v1/pets');
});

test('a hanging collector delays no request, and the stop by less than 5 s; spans beyond the queue are dropped', async () => {
  collector.mode = 'hang';
  const limits = { OTEL_BSP_MAX_QUEUE_SIZE: '10', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '5' };
  const service = services.start({ ...collector.settings, ...limits });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  for (let count = 0; count < 20; count++) expect((await client.get('/v1/pets')).status).toBe(200);
  const from = performance.now();
  expect(await service.stop('SIGTERM')).toBe(0);
  // The flush may take 1.5 s; the rest is for a busy machine.
  expect(performance.now() - from).toBeLessThan(5_000);
  // One export was in flight; the stop sends the queue in two more.
  expect(collector.exports).toHaveLength(3);
  expect(collector.exports.flatMap(({ body }) => body.toString().match(/"spanId"/g) ?? []).length).toBeLessThanOrEqual(
    15,
  );
  expect(service.stdout).toContain('The collector did not get the last spans: it did not take them within 1500 ms.');
});

test('a collector that resets the connections of the last exports delays the stop by less than 5 s, and is logged once', async () => {
  collector.mode = 'reset';
  const service = services.start({ ...collector.settings, OTEL_BSP_SCHEDULE_DELAY: '600000' });
  await list(service);
  expect(collector.exports).toEqual([]);
  const from = performance.now();
  expect(await service.stop('SIGTERM')).toBe(0);
  // The flush may take 1.5 s; the rest is for a busy machine.
  expect(performance.now() - from).toBeLessThan(5_000);
  expect(collector.exports.length).toBeGreaterThan(0);
  const warnings = service.stdout.split('\n').filter((line) => /"level":[4-6]0/.test(line));
  expect(warnings).toEqual([expect.stringMatching(/The collector did not get the last spans: [^"]+\./)]);
});

test.each<[what: string, mode: 'away' | 'refuse' | 'reject', settings: Record<string, string>, cause: RegExp]>([
  ['is unreachable', 'away', {}, /ECONNREFUSED/],
  ['refuses', 'refuse', {}, /Spans are lost: /],
  ['rejects spans of what it takes, in JSON,', 'reject', {}, /rejectedSpans.*1.*too old/],
  [
    'rejects spans of what it takes',
    'reject',
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' },
    /rejectedSpans.*1.*too old/,
  ],
])('a collector that %s fails no request, and is logged at most once a minute', async (_, mode, settings, cause) => {
  collector.mode = mode === 'away' ? 'refuse' : mode;
  // Nothing listens on the port of a closed server.
  const closed: Server = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  await once(closed, 'close');
  const url = mode === 'away' ? `http://127.0.0.1:${port}` : collector.url;
  const service = services.start({
    ...collector.settings,
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_TIMEOUT: '100',
    ...settings,
  });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  const deadline = performance.now() + 2_000;
  while (performance.now() < deadline) expect((await client.get('/v1/pets')).status).toBe(200);
  expect(await service.stop('SIGTERM')).toBe(0);
  const warnings = service.stdout.split('\n').filter((line) => line.includes('Spans are lost: '));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(cause);
  expect(warnings[0]).toContain('"level":40');
});

test.each([
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL=grpc needs an SDK of OpenTelemetry that'],
  [{ OTEL_TRACES_SAMPLER: 'xray' }, 'OTEL_TRACES_SAMPLER=xray needs an SDK of OpenTelemetry that you start yourself'],
])('%j is refused at the start, in one line', async (settings, message) => {
  const service = services.start({ ...collector.settings, ...settings });
  expect(await service.ended).toBe(1);
  expect(service.stderr).toContain(`petstore: ${message}`);
  expect(service.stderr.trim().split('\n')).toHaveLength(1);
});

test('an SDK that was started before the service gets its spans, and only one span for each request', async () => {
  const sdk = join(home, 'instrumentation.mjs');
  await writeFile(
    sdk,
    `import { createRequire } from 'node:module';
     import { Server } from 'node:http';
     const require = createRequire(${JSON.stringify(join(ROOT, 'package.json'))});
     const { context, SpanKind, trace } = require('@opentelemetry/api');
     const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks');
     const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
     const { SimpleSpanProcessor, TracerProvider } = require('@opentelemetry/sdk-trace');
     const exporter = new OTLPTraceExporter({ url: process.env.OTEL_EXPORTER_OTLP_ENDPOINT + '/v1/traces' });
     trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
     context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
     // As OpenTelemetry's instrumentation of http does.
     const { emit } = Server.prototype;
     Server.prototype.emit = function (event, request, response, ...others) {
       if (event !== 'request') return emit.call(this, event, request, response, ...others);
       const span = trace.getTracer('own').startSpan('own', { kind: SpanKind.SERVER });
       response.on('close', () => span.end());
       return context.with(trace.setSpan(context.active(), span), () => emit.call(this, event, request, response, ...others));
     };`,
  );
  const settings = { ...collector.settings, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'xray' };
  const service = services.start(settings, ['--import', pathToFileURL(sdk).href, MAIN]);
  await list(service);
  const [request] = await collector.find(({ kind }) => kind === SERVER);
  expect(request).toMatchObject({
    name: 'GET /v1/pets',
    attributes: { 'petstore.operation': 'listPets', 'http.route': '/v1/pets', 'http.response.status_code': 200 },
  });
  await collector.find(({ kind, parentSpanId }) => kind === CLIENT && parentSpanId === request?.spanId);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(service.stdout).toContain(`"traceId":"${request?.traceId}"`);
  expect(collector.spans.filter(({ kind }) => kind === SERVER)).toHaveLength(1);
});

test('each process of a group sends its own spans', async () => {
  const service = services.start({ ...collector.settings, WEB_CONCURRENCY: '2' });
  await list(service);
  const [first] = await collector.find(({ kind }) => kind === SERVER);
  const pid = Number(first?.resource['process.pid']);
  expect(pid).not.toBe(service.pid);
  // The kernel decides which process gets a connection. After the end of this one, another process gets it.
  process.kill(pid, 'SIGKILL');
  const isOther = ({ kind, resource }: ReceivedSpan): boolean =>
    kind === SERVER && Number(resource['process.pid']) !== pid;
  for (const deadline = Date.now() + 60_000; Date.now() < deadline && !collector.spans.some(isOther);) {
    await list(service).catch(() => undefined);
    await sleep(50);
  }
  expect(collector.spans.filter(isOther)).not.toEqual([]);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(new Set(collector.spans.map(({ resource }) => resource['service.instance.id'])).size).toBe(2);
});
