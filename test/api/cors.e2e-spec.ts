import { Controller, Module, Post } from '@nestjs/common';
import { Public } from '#api-keys';
import { ApiError, UNAVAILABLE } from '#errors';
import { createTestApp, type TestApp } from '../support/app.js';

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
  app = await createTestApp({ features: [SamplesModule], settings: { CORS_ORIGINS: ORIGIN } });
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
  expect(preflight.headers['access-control-allow-methods']).toBe('OPTIONS, POST');
  expect(preflight.headers['access-control-allow-headers']).toBe('x-sample');
  const { headers } = await app.client.send('POST', path, { headers: { origin: ORIGIN } });
  expect(headers['access-control-expose-headers']).toBe('*');
  // Browsers ignore the asterisk for requests with cookies, which this field would allow.
  expect(headers['access-control-allow-credentials']).toBeUndefined();
});
