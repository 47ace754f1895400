import { Controller, Module, Post } from '@nestjs/common';
import { ApiError, UNAVAILABLE } from '#errors';
import { Public } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import { rawRequest } from '../support/raw-request.js';
import { SlowModule, TestSlowController } from '../support/slow.js';
import { until } from '../support/until.js';

const ORIGIN = 'https://app.example.com';

@Public()
@Controller('test-samples')
class TestSamplesController {
  @Post('unavailable')
  failSample(): void {
    throw new ApiError(UNAVAILABLE, 'Not at the moment.', { 'Retry-After': '1' });
  }
}

@Module({ controllers: [TestSamplesController] })
class SamplesModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({
    features: [SamplesModule, SlowModule],
    settings: { CORS_ORIGINS: ORIGIN, MAX_REQUESTS_IN_FLIGHT: '1' },
  });
});
afterAll(() => app.close());

test('a route of a module returns 405 for other methods; scripts may send and read every header field', async () => {
  const path = '/v1/test-samples/unavailable';
  for (const method of ['GET', 'HEAD']) {
    const answer = await app.client.send(method, path);
    expect([answer.status, answer.headers.allow]).toEqual([405, 'OPTIONS, POST']);
  }
  const asked = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-sample' };
  const preflight = await app.client.send('OPTIONS', path, { apiKey: null, headers: { origin: ORIGIN, ...asked } });
  expect(preflight.headers['access-control-allow-methods']).toBe('OPTIONS, POST, PUT');
  expect(preflight.headers['access-control-allow-headers']).toBe('x-sample');
  const { headers } = await app.client.send('POST', path, { headers: { origin: ORIGIN } });
  expect(headers['access-control-expose-headers']).toBe('*');
  // Browsers ignore the asterisk for requests with cookies, which this field would allow.
  expect(headers['access-control-allow-credentials']).toBeUndefined();
});

test('a script is told 503 under overload: its preflight request is granted', async () => {
  const slow = app.client.get('/v1/test-slow');
  const { waiting } = app.nest.get(TestSlowController);
  await until(() => waiting.length === 1);
  const asked = { origin: ORIGIN, 'access-control-request-method': 'POST' };
  expect((await app.client.send('OPTIONS', '/v1/pets', { apiKey: null, headers: asked })).status).toBe(204);
  const answer = await app.client.send('POST', '/v1/pets', { headers: { origin: ORIGIN }, body: '{}' });
  expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([503, ORIGIN]);
  // Other origins get no more than without CORS.
  const foreign = { ...asked, origin: 'https://evil.example' };
  expect((await app.client.send('OPTIONS', '/v1/pets', { apiKey: null, headers: foreign })).status).toBe(503);
  waiting.pop()?.();
  expect((await slow).status).toBe(200);
});

test('a body that breaks behind an early response changes nothing', async () => {
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nX-Request-Id: early\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const answer = await rawRequest(app.port, head, { then: { after: '"status":401', send: 'no chunk\r\n' } });
  expect(answer).toMatch(/^HTTP\/1\.1 401 [^]*"status":401\}$/);
  await until(() => app.log.requests.some(({ requestId }) => requestId === 'early'));
  expect(app.log.requests.find(({ requestId }) => requestId === 'early')).not.toHaveProperty('aborted');
  expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
});
