import { once } from 'node:events';
import { connect } from 'node:net';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';
import { LARGE, SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

test('during SHUTDOWN_DELAY_MS readiness is 503, so that load balancers see it, and requests are still served', async () => {
  const METRICS_TOKEN = 'the-token-of-prometheus+32/characters==';
  const app = await createTestApp({ settings: { SHUTDOWN_DELAY_MS: '1500', METRICS_TOKEN } });
  const closed = app.close();
  const ready = await until(async () => {
    const answer = await app.client.get('/health/ready', { apiKey: null });
    return answer.status === 503 && answer;
  });
  expect(ready.json).toEqual({ code: 'unavailable', message: 'The server is shutting down.', status: 503 });
  expect(ready.headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
  expect((await app.client.get('/health/live', { apiKey: null })).status).toBe(200);
  const pets = await app.client.get('/v1/pets');
  expect([pets.status, pets.headers.connection]).toEqual([200, 'close']);
  const { text } = await app.client.get('/metrics', { apiKey: METRICS_TOKEN });
  expect(text).toMatch(/^petstore_http_unavailable_total\{operation="checkReadiness",cause="draining"\} [1-9]/m);
  await closed;
});

/** The error of a new connection, once there is one. */
const refusal = (app: TestApp): Promise<string> =>
  until(() => app.client.get('/health/live').then(() => false as const, String));

test('requests in flight finish and their connections close, and new connections are refused', async () => {
  const app = await createTestApp({ features: [SlowModule] });
  const slow = rawRequest(app.port, 'GET /v1/test-slow HTTP/1.1\r\nHost: x\r\n\r\n');
  const pipelined = rawRequest(
    app.port,
    'GET /v1/test-slow HTTP/1.1\r\nHost: x\r\n\r\nGET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n',
  );
  const { waiting } = app.nest.get(TestSlowController);
  await until(() => waiting.length === 2);
  const closed = app.close();
  expect(await refusal(app)).toMatch(/ECONNREFUSED|ECONNRESET|socket hang up/);
  waiting.forEach((answer) => answer());
  const answer = await slow;
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(answer).toMatch(/\r\nConnection: close\r\n/);
  expect(answer).toContain('["slow"]');
  expect(await pipelined).toContain('["slow"]');
  await closed;
});

test('a response that began before the shutdown is sent completely, and its connection then closes', async () => {
  const app = await createTestApp({ features: [SlowModule], settings: { SHUTDOWN_TIMEOUT_MS: '60000' } });
  const parts = rawRequest(app.port, 'GET /v1/test-slow/parts HTTP/1.1\r\nHost: x\r\n\r\n');
  const slow = connect(app.port, '127.0.0.1');
  slow.write('GET /v1/test-slow/large HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(slow, 'readable');
  const closed = app.close();
  await refusal(app);
  app.nest.get(TestSlowController).parts.end('last');
  expect(await parts).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]+Connection: keep-alive\r\n[^]+last/);
  let length = 0;
  for await (const chunk of slow) length += (chunk as Buffer).length;
  expect(length).toBeGreaterThan(LARGE.length);
  await closed;
  expect(app.log.text).not.toContain('Cutting');
});
