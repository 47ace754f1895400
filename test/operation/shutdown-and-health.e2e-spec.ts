import { Controller, Get, Module, StreamableFile } from '@nestjs/common';
import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { Database } from '../../src/platform/database/database.js';
import { Metrics } from '../../src/platform/observability/metrics.js';
import { AggregatorRegistry } from 'prom-client';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';

@Public()
@Controller('slow')
class SlowController {
  @Get()
  async answerSlowly(): Promise<string[]> {
    await sleep(1_000);
    return ['done'];
  }
}

/** More than the buffers of a connection hold. */
const LARGE = 'x'.repeat(32 * 1024 * 1024);

@Public()
@Controller('parts')
class PartsController {
  readonly stream = new PassThrough();

  @Get()
  answerInParts(): StreamableFile {
    this.stream.write('first ');
    return new StreamableFile(this.stream);
  }

  @Get('large')
  answerMuch(): string {
    return LARGE;
  }
}

@Module({ controllers: [SlowController, PartsController] })
class SlowModule {}

describe('around the API', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ settings: { CORS_ORIGINS: 'https://app.example.com,http://localhost:5173' } });
  });
  afterAll(() => app.close());

  test.each(['/health/live', '/health/ready'])('200: %s, without a key and not cached', async (path) => {
    const answer = await app.client.get(path, { apiKey: null });
    expect([answer.status, answer.json]).toEqual([200, { status: 'ok' }]);
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test('503 unavailable: readiness while a migration is missing, liveness stays', async () => {
    const other = await createTestApp();
    await other.sql('DELETE FROM schema_migration WHERE id = (SELECT max(id) FROM schema_migration)');
    const ready = await other.client.get('/health/ready', { apiKey: null });
    expect(ready.json).toEqual({
      code: 'unavailable',
      message: 'The database schema is not the one of this version.',
      status: 503,
    });
    expect(ready.headers['retry-after']).toBe('1');
    expect((await other.client.get('/health/live', { apiKey: null })).status).toBe(200);
    await other.close();
  });

  test('/metrics needs a key with metrics:read, and counts by operation and status', async () => {
    expect((await app.client.get('/metrics', { apiKey: null })).status).toBe(401);
    expect((await app.client.get('/metrics')).json).toMatchObject({ code: 'insufficient_scope' });
    const { secret } = await app.nest.get(ApiKeysService).create({ client: 'prometheus', scopes: ['metrics:read'] });
    await app.client.get('/v1/pets');
    await app.client.get('/v1/pets?limit=0');
    const answer = await app.client.get('/metrics', { apiKey: secret });
    expect(answer.text).toMatch(/^petstore_database_silent 0$/m);
    expect(answer.text).toMatch(/^petstore_database_connections\{state="idle"\} [1-9]\d*$/m);
    expect(answer.text).toMatch(/^petstore_database_waiting_statements 0$/m);
    expect(answer.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(answer.text).toMatch(
      /petstore_http_request_duration_seconds_count\{operation="listPets",method="GET",status="200"\} [1-9]/,
    );
    expect(answer.text).toMatch(
      /petstore_http_request_duration_seconds_count\{operation="listPets",method="GET",status="400"\} [1-9]/,
    );
    expect((await app.client.get('/v1/pets', { apiKey: secret })).status).toBe(403);
  });

  test('the database is silent for a group when it is for one process, or for more', async () => {
    const metrics = await app.nest.get(Metrics).registry.getMetricsAsJSON();
    const silent = metrics
      .filter(({ name }) => name === 'petstore_database_silent')
      .map((metric) => ({ ...metric, values: [{ value: 1, labels: {} }] }));
    const group = await AggregatorRegistry.aggregate([silent, silent]).metrics();
    expect(group).toMatch(/^petstore_database_silent 1$/m);
  });

  test('one log line a request, with request id, operation, client, status, code and duration', async () => {
    await app.client.get('/v1/pets?limit=0', { headers: { 'x-request-id': 'log-me' } });
    expect(app.log.requests.filter((line) => line['requestId'] === 'log-me')).toEqual([
      expect.objectContaining({
        level: 30,
        operation: 'listPets',
        client: 'test-client',
        method: 'GET',
        status: 400,
        code: 'invalid_parameter',
        durationMs: expect.any(Number) as number,
      }),
    ]);
  });

  test('the log holds no key, no header, no body and no query', async () => {
    const headers = { 'x-secret': 'secret-header-value', cookie: 'secret-cookie' };
    await app.client.post('/v1/pets', { name: 'secret-body-value', categoryId: 7 }, { headers });
    await app.client.get('/v1/pets?status=secret-query-value', { headers });
    await app.client.get('/v1/pets', { apiKey: 'secret-unknown-key-0000' });
    expect(app.log.requests.length).toBeGreaterThan(2);
    for (const secret of [app.apiKey, 'secret-']) {
      expect(app.log.text).not.toContain(secret);
    }
  });

  test('CORS: a preflight from a known origin is allowed and answered 204 with Allow', async () => {
    const headers = {
      origin: 'https://app.example.com',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type,idempotency-key',
    };
    const answer = await app.client.send('OPTIONS', '/v1/pets', { apiKey: null, headers });
    expect(answer.status).toBe(204);
    expect(answer.headers).toMatchObject({
      allow: 'GET, HEAD, OPTIONS, POST',
      'access-control-allow-origin': 'https://app.example.com',
      'access-control-allow-headers': 'authorization,content-type,idempotency-key',
    });
    expect(answer.headers['access-control-allow-methods']).toContain('POST');
  });

  test('CORS: answers name a known origin, and Vary lists Origin and Authorization; unknown origins get nothing', async () => {
    const known = await app.client.get('/v1/pets', { headers: { origin: 'http://localhost:5173' } });
    expect(known.headers).toMatchObject({
      'access-control-allow-origin': 'http://localhost:5173',
      vary: 'Origin, Authorization',
      'access-control-expose-headers': expect.stringMatching(/\bIdempotent-Replayed\b.*\bLink\b/) as string,
    });
    const unknown = await app.client.get('/v1/pets', { headers: { origin: 'https://evil.example' } });
    expect(unknown.headers['access-control-allow-origin']).toBeUndefined();
    const refused = await app.client.get('/v1/pets', { apiKey: null, headers: { origin: 'http://localhost:5173' } });
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, 'http://localhost:5173']);
  });
});

test('CORS is off unless CORS_ORIGINS is set', async () => {
  const app = await createTestApp();
  const answer = await app.client.get('/v1/pets', { headers: { origin: 'https://app.example.com' } });
  expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  await app.close();
});

test('503 unavailable: no more than a thousand statements wait for a connection', async () => {
  const app = await createTestApp({ settings: { DATABASE_POOL_SIZE: '1' } });
  const database = app.nest.get(Database);
  const outcomes = await database.transaction(async () => {
    // The one connection is taken, so that all of these wait for it.
    const waiting = Array.from({ length: 1_005 }, () => database.write({ name: 'one', text: 'SELECT 1' }, []));
    const refused = await Promise.all(
      waiting.slice(1_000).map((statement) => statement.catch((error: unknown) => error)),
    );
    return { refused, waiting: waiting.slice(0, 1_000) };
  });
  for (const error of outcomes.refused) {
    expect(error).toMatchObject({ definition: { code: 'unavailable', status: 503 }, headers: { 'Retry-After': '1' } });
  }
  expect(await Promise.all(outcomes.waiting)).toHaveLength(1_000);
  await app.close();
});

describe('shutdown', () => {
  test('readiness turns 503 while SHUTDOWN_DELAY_MS lets a load balancer see it, and requests are served on', async () => {
    const app = await createTestApp({ settings: { SHUTDOWN_DELAY_MS: '1500' } });
    const closed = app.close();
    await sleep(100);
    const ready = await app.client.get('/health/ready', { apiKey: null });
    expect(ready.json).toEqual({ code: 'unavailable', message: 'The server is shutting down.', status: 503 });
    expect(ready.headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
    expect((await app.client.get('/health/live', { apiKey: null })).status).toBe(200);
    const pets = await app.client.get('/v1/pets');
    expect([pets.status, pets.headers.connection]).toEqual([200, 'close']);
    await closed;
  });

  test('requests in flight finish on connections that close, and new ones are refused', async () => {
    const app = await createTestApp({ modules: [SlowModule] });
    const slow = rawRequest(app.port, 'GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n');
    const pipelined = rawRequest(
      app.port,
      'GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\nGET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    await sleep(200);
    const closed = app.close();
    await sleep(100);
    await expect(app.client.get('/health/live')).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
    const answer = await slow;
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(answer).toContain('["done"]');
    expect(await pipelined).toContain('["done"]');
    await closed;
  });

  test('an answer that began before it and ends later closes its connection, and is not cut', async () => {
    const app = await createTestApp({ modules: [SlowModule], settings: { SHUTDOWN_TIMEOUT_MS: '60000' } });
    const parts = rawRequest(app.port, 'GET /v1/parts HTTP/1.1\r\nHost: x\r\n\r\n');
    const slow = connect(app.port, '127.0.0.1');
    slow.write('GET /v1/parts/large HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(slow, 'readable');
    await sleep(200);
    const closed = app.close();
    await sleep(500);
    app.nest.get(PartsController).stream.end('last');
    expect(await parts).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]+Connection: keep-alive\r\n[^]+last/);
    let length = 0;
    for await (const chunk of slow) length += (chunk as Buffer).length;
    expect(length).toBeGreaterThan(LARGE.length);
    await closed;
    expect(app.log.text).not.toContain('Cutting');
  });

  test('after SHUTDOWN_TIMEOUT_MS what is left is cut, and the log says so', async () => {
    const app = await createTestApp({ modules: [SlowModule], settings: { SHUTDOWN_TIMEOUT_MS: '200' } });
    const slow = app.client.get('/v1/slow', { apiKey: null });
    const failed = expect(slow).rejects.toThrow();
    await sleep(100);
    await app.close();
    await failed;
    expect(app.log.text).toContain('Cutting 1 requests that did not finish within 200 ms: answerSlowly (1).');
  });
});
