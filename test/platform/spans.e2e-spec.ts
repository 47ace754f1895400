import { Controller, Get, Logger, Module } from '@nestjs/common';
import { context, trace } from '@opentelemetry/api';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { Database } from '../../src/platform/database/database.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { describeOnPostgresql } from '../support/database.js';
import { CLIENT, OtlpCollector, type ReceivedSpan, SERVER } from '../support/otlp-collector.js';
import { rawRequest } from '../support/raw-request.js';

/* The spans of requests and statements, as a collector receives them. */

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';

@Public()
@Controller('test-orders')
class TestOrdersController {
  /** Lets the handler `findSlowly` end. */
  finish: () => void = () => undefined;

  constructor(private readonly database: Database) {}

  @Get('spans/:id')
  async findWithSpan(): Promise<string> {
    trace.getActiveSpan()?.setAttribute('order.kind', 'gift');
    const span = trace.getTracer('orders').startSpan('price');
    await context.with(trace.setSpan(context.active(), span), async () => {
      await this.database.readPrimary({ name: '', text: `SELECT 'secret-1' AS "order", 17, $1::text` }, ['secret-2']);
    });
    span.end();
    new Logger('Orders').log('found');
    return 'found';
  }

  @Get('failing')
  async fail(): Promise<void> {
    await this.database.readPrimary({ name: '', text: 'SELECT $1::text::int FROM pg_class' }, ['secret-3']);
  }

  @Get('slow')
  async findSlowly(): Promise<string> {
    await new Promise<void>((resolve) => (this.finish = resolve));
    return 'late';
  }

  @Get('later')
  leaveBehind(): string {
    setTimeout(() => {
      void this.database.readPrimary({ name: '', text: 'SELECT 1 AS left_behind' }, []);
    }, 100);
    return 'done';
  }
}

@Module({ controllers: [TestOrdersController] })
class OrdersModule {}

let collector: OtlpCollector;
let app: TestApp;
beforeAll(async () => {
  collector = await OtlpCollector.start();
  app = await createTestApp({
    features: [OrdersModule],
    settings: {
      ...collector.settings,
      FAST_PATHS: 'on',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=all,x-team=pets',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-tenant=shop%201',
    },
  });
});
afterAll(async () => {
  await app.close();
  await collector.close();
});

const childrenOf = async (span: ReceivedSpan, count = 1): Promise<ReceivedSpan[]> =>
  collector.find(({ parentSpanId }) => parentSpanId === span.spanId, count);

const logOf = (requestId: unknown): unknown => app.log.requests.find((line) => line.requestId === requestId)?.traceId;

test('a request is a server span, which continues the trace of its caller', async () => {
  const answer = await app.client.get('/v1/pets?limit=3', {
    headers: {
      traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`,
      tracestate: 'vendor=1',
      'user-agent': 'shop/1.0',
      'x-request-id': 'request-1',
    },
  });
  expect(answer.status).toBe(200);
  const span = await collector.request('request-1');
  expect(span).toMatchObject({
    name: 'GET /v1/pets',
    kind: SERVER,
    traceId: TRACE_ID,
    parentSpanId: PARENT_ID,
    traceState: 'vendor=1',
    status: { code: 0 },
  });
  expect(span.attributes).toEqual({
    'http.request.method': 'GET',
    'http.route': '/v1/pets',
    'http.response.status_code': 200,
    'url.path': '/v1/pets',
    'url.scheme': 'http',
    'server.address': '127.0.0.1',
    'server.port': app.port,
    'network.protocol.version': '1.1',
    'user_agent.original': 'shop/1.0',
    'petstore.request_id': 'request-1',
    'petstore.operation': 'listPets',
    'petstore.client': 'test-client',
  });
  expect(span.resource).toMatchObject({
    'service.name': 'shop',
    'service.version': expect.stringMatching(/^\d/),
    'service.instance.id': expect.stringMatching(/^[\da-f-]{36}$/),
    'deployment.environment.name': 'test',
    'telemetry.sdk.language': 'nodejs',
  });
  expect(logOf('request-1')).toBe(TRACE_ID);
  expect(collector.exports[0]).toMatchObject({
    path: '/v1/traces',
    headers: { 'x-tenant': 'shop 1', 'x-team': 'pets' },
  });
});

test('without a traceparent the request begins a trace, whose id is in the log', async () => {
  const headers = { 'x-request-id': 'request-2' };
  await app.client.get('/v1/test-orders/spans/7', { apiKey: null, headers });
  const span = await collector.request('request-2');
  expect(span.parentSpanId ?? '').toBe('');
  expect(span.traceId).toMatch(/^[\da-f]{32}$/);
  expect(logOf('request-2')).toBe(span.traceId);
  const ofHandler = app.log.lines.find(({ msg, context: name }) => msg === 'found' && name === 'Orders');
  expect(ofHandler).toMatchObject({ requestId: 'request-2', traceId: span.traceId });
});

test('the span has the route of the operation, and handlers add attributes and spans with the API of OpenTelemetry', async () => {
  await app.client.get('/v1/test-orders/spans/8?token=secret-4', { headers: { 'x-request-id': 'request-3' } });
  const span = await collector.request('request-3');
  expect(span).toMatchObject({ name: 'GET /v1/test-orders/spans/{id}', attributes: { 'order.kind': 'gift' } });
  const [price] = (await childrenOf(span)) as [ReceivedSpan];
  expect(price.name).toBe('price');
  const [statement] = (await childrenOf(price)) as [ReceivedSpan];
  expect(statement).toMatchObject({
    name: 'SELECT',
    kind: CLIENT,
    traceId: span.traceId,
    status: { code: 0 },
    links: [],
  });
  expect(statement.attributes).toMatchObject({
    'db.system.name': 'postgresql',
    'db.operation.name': 'SELECT',
    'db.query.summary': 'SELECT',
    'db.query.text': 'SELECT ? AS "order", ?, $1::text',
  });
});

test('a statement of one request is its child', async () => {
  const answer = await app.client.post('/v1/pets', { name: 'secret-5', categoryId: 7 });
  expect(answer.status).toBe(201);
  const span = await collector.request(answer.headers['x-request-id']);
  const inserts = (await childrenOf(span)).filter(({ name }) => name === 'INSERT pet');
  expect(inserts).toHaveLength(1);
  expect(inserts[0]).toMatchObject({ kind: CLIENT, traceId: span.traceId, links: [] });
  expect(inserts[0]?.attributes).toMatchObject({
    'db.collection.name': 'pet',
    'db.operation.name': 'INSERT',
    'db.query.text': expect.stringContaining('$1'),
  });
});

// The embedded engine answers each statement before the next request is read, so requests seldom share one there.
describeOnPostgresql('what requests share', () => {
  test('a statement that requests share is one span with links to all of them, and each of them leads to it', async () => {
    let shared: ReceivedSpan | undefined;
    for (let round = 0; round < 20 && shared === undefined; round++) {
      const sent = Array.from({ length: 20 }, (_, index) =>
        app.client.post(
          '/v1/pets',
          { name: `Rex ${index}`, categoryId: 7 },
          { headers: { 'x-request-id': `s-${round}-${index}` } },
        ),
      );
      expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(sent.map(() => 201));
      await collector.find(({ attributes }) => String(attributes['petstore.request_id']).startsWith(`s-${round}-`), 20);
      shared = collector.spans.find(({ name, links }) => name === 'INSERT pet' && links.length > 1);
    }
    const { links, spanId, parentSpanId, traceId } = shared as ReceivedSpan;
    const requests = links.map((link) => collector.spans.find((span) => span.spanId === link.spanId) as ReceivedSpan);
    expect(requests.map(({ name }) => name)).toEqual(links.map(() => 'POST /v1/pets'));
    expect(new Set(requests.map((one) => one.traceId)).size).toBe(links.length);
    expect(requests[0]).toMatchObject({ spanId: parentSpanId, traceId });
    for (const request of requests.slice(1))
      expect(request.links).toEqual([expect.objectContaining({ spanId, traceId })]);
    // Each of the 20 requests has one statement, and none has two.
    const statements = collector.spans.filter(({ name }) => name === 'INSERT pet');
    for (const { spanId: id } of collector.spans.filter(
      ({ name, attributes }) => name === 'POST /v1/pets' && /^s-/.test(String(attributes['petstore.request_id'])),
    )) {
      const mine = statements.filter((one) =>
        one.links.length > 0 ? one.links.some((link) => link.spanId === id) : one.parentSpanId === id,
      );
      expect(mine).toHaveLength(1);
    }
  });

  test('requests for the same page also share the span of its statement', async () => {
    let shared: ReceivedSpan | undefined;
    for (let round = 0; round < 20 && shared === undefined; round++) {
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          app.client.get('/v1/pets', { headers: { 'x-request-id': `p-${round}-${index}` } }),
        ),
      );
      await collector.find(({ attributes }) => String(attributes['petstore.request_id']).startsWith(`p-${round}-`), 20);
      shared = collector.spans.find(({ name, links }) => name === 'SELECT pet' && links.length > 1);
    }
    for (const { spanId } of shared?.links ?? []) {
      expect(collector.spans.find((span) => span.spanId === spanId)?.name).toBe('GET /v1/pets');
    }
    expect(shared).toBeDefined();
  });
});

test('a caller that does not sample its trace gets no span, and its id is in the log', async () => {
  const traceId = 'a'.repeat(32);
  const headers = { traceparent: `00-${traceId}-${PARENT_ID}-00`, 'x-request-id': 'unsampled' };
  expect((await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { headers })).status).toBe(201);
  expect(logOf('unsampled')).toBe(traceId);
  const later = await app.client.get('/v1/pets');
  await collector.request(later.headers['x-request-id']);
  expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
});

test.each<[what: string, method: string, path: string, status: number, name: string, code: string]>([
  ['a client error', 'GET', '/v1/pets/9999999', 404, 'GET /v1/pets/{petId}', 'pet_not_found'],
  ['a route that is not there', 'GET', '/v1/nothing', 404, 'GET', 'route_not_found'],
  ['a method that is not allowed', 'DELETE', '/v1/pets', 405, 'DELETE', 'method_not_allowed'],
  ['a target that is refused before routing', 'GET', '/v1/pets#a', 400, 'GET', 'bad_request'],
])('%s ends its span, which is no error', async (_, method, path, status, name, code) => {
  const requestId = `client-error-${status}-${code}`;
  const sent = `${method} ${path} HTTP/1.1\r\nHost: shop.example\r\nX-Request-Id: ${requestId}\r\nAuthorization: Bearer ${app.apiKey}\r\nConnection: close\r\n\r\n`;
  expect(await rawRequest(app.port, sent)).toContain(`HTTP/1.1 ${status} `);
  const span = await collector.request(requestId);
  expect(span).toMatchObject({ name, kind: SERVER, status: { code: 0 } });
  expect(span.attributes).toMatchObject({
    'http.response.status_code': status,
    'petstore.error_code': code,
    'server.address': 'shop.example',
  });
  expect(span.attributes).not.toHaveProperty('error.type');
});

test('an unknown method is _OTHER', async () => {
  const sent = 'PURGE /v1/pets HTTP/1.1\r\nHost: a\r\nX-Request-Id: purge\r\nConnection: close\r\n\r\n';
  await rawRequest(app.port, sent);
  expect(await collector.request('purge')).toMatchObject({
    name: 'HTTP',
    attributes: { 'http.request.method': '_OTHER', 'http.request.method_original': 'PURGE' },
  });
});

test('a body that fails in the parser ends the span of its request; bytes that are no request have their own span', async () => {
  const head = `POST /v1/pets HTTP/1.1\r\nHost: a\r\nX-Request-Id: broken-body\r\nAuthorization: Bearer ${app.apiKey}\r\n`;
  await rawRequest(app.port, `${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`);
  expect((await collector.request('broken-body')).attributes).toMatchObject({ 'http.response.status_code': 400 });
  await rawRequest(app.port, 'no request\r\n\r\n');
  const [span] = await collector.find(
    ({ name, attributes }) =>
      name === 'HTTP' && attributes['http.response.status_code'] === 400 && attributes['url.path'] === undefined,
  );
  expect(span).toMatchObject({
    kind: SERVER,
    attributes: { 'http.request.method': '_OTHER', 'petstore.error_code': 'bad_request' },
  });
});

test('the spans of an answer 500 and of its statement are errors, with the code of PostgreSQL', async () => {
  const answer = await app.client.get('/v1/test-orders/failing', { expects500: true });
  expect(answer.status).toBe(500);
  const span = await collector.request(answer.headers['x-request-id']);
  expect(span).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'internal_error' } });
  const [statement] = await childrenOf(span);
  expect(statement).toMatchObject({
    name: 'SELECT pg_class',
    status: { code: 2 },
    attributes: { 'db.response.status_code': '22P02', 'error.type': '22P02' },
  });
});

test('a span ends when the client of its request disconnects', async () => {
  const socket = connect(app.port, '127.0.0.1', () => {
    socket.write('GET /v1/test-orders/slow HTTP/1.1\r\nHost: a\r\nX-Request-Id: gone\r\n\r\n');
  });
  await sleep(200);
  socket.destroy();
  await once(socket, 'close');
  const span = await collector.request('gone');
  expect(span).toMatchObject({ name: 'GET /v1/test-orders/slow', attributes: { 'petstore.aborted': true } });
  expect(span.attributes).not.toHaveProperty('http.response.status_code');
  app.nest.get(TestOrdersController).finish();
});

test('pipelined requests have their own spans, each below its own caller', async () => {
  const request = (id: string, parent: string): string =>
    `GET /v1/test-orders/spans/9 HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\ntraceparent: 00-${TRACE_ID}-${parent}-01\r\n`;
  const parents = ['1'.repeat(16), '2'.repeat(16)] as const;
  await rawRequest(
    app.port,
    `${request('ahead-1', parents[0])}\r\n${request('ahead-2', parents[1])}Connection: close\r\n\r\n`,
  );
  for (const [index, parent] of parents.entries()) {
    const span = await collector.request(`ahead-${index + 1}`);
    expect(span.parentSpanId).toBe(parent);
    await childrenOf(span);
  }
});

test('work after the end of a request, and statements of the service itself, have no span', async () => {
  const answer = await app.client.get('/v1/test-orders/later');
  await collector.request(answer.headers['x-request-id']);
  await sleep(300);
  await app.nest.get(Database).readPrimary({ name: '', text: 'SELECT 1 AS by_itself' }, []);
  const later = await app.client.get('/v1/pets');
  await collector.request(later.headers['x-request-id']);
  expect(JSON.stringify(collector.spans)).not.toMatch(/left_behind|by_itself/);
});

test('spans contain no query, no key and no value of a statement', () => {
  const all = JSON.stringify(collector.spans);
  expect(all).not.toMatch(/secret-\d/);
  expect(all).not.toContain(app.apiKey);
  expect(all).not.toMatch(/limit=3|Bearer/);
});
