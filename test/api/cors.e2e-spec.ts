import { ApiHeader, ApiOkResponse } from '@nestjs/swagger';
import { Controller, Get, Header, Module, Post } from '@nestjs/common';
import { ApiKeysService, Public } from '#api-keys';
import { Deprecated, Stability } from '#deprecation';
import { ApiError, UNAVAILABLE } from '#errors';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer, HttpCall } from '../support/http-client.js';

const ORIGIN = 'https://app.example.com';

@Public()
@Controller('test-samples')
class TestSamplesController {
  @Get()
  @Stability('beta')
  @Deprecated({ since: '2026-01-01Z', sunset: '2999-01-01Z', successor: '/new', replacement: 'Use it.' })
  @ApiHeader({ name: 'X-Sample', description: 'A request header field of the module.' })
  @ApiOkResponse({ description: 'Samples.', headers: { 'Sample-Total': { schema: { type: 'integer' } } } })
  @Header('Sample-Total', '7')
  listSamples(): string[] {
    return [];
  }

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
    features: [SamplesModule],
    settings: { CORS_ORIGINS: `${ORIGIN},http://localhost:5173` },
  });
});
afterAll(() => app.close());

const namesIn = (list: string | string[] | undefined): string[] =>
  String(list ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter(Boolean);

test('a route of a module returns 405 for other methods, and a preflight offers what the module reads', async () => {
  const path = '/v1/test-samples/unavailable';
  for (const method of ['GET', 'HEAD']) {
    const answer = await app.client.send(method, path);
    expect([answer.status, answer.headers.allow]).toEqual([405, 'OPTIONS, POST']);
  }
  const headers = { origin: ORIGIN, 'access-control-request-method': 'PUT' };
  const preflight = await app.client.send('OPTIONS', path, { apiKey: null, headers });
  expect(preflight.headers['access-control-allow-methods']).toBe('OPTIONS, POST');
  expect(namesIn(preflight.headers['access-control-allow-headers'])).toContain('x-sample');
});

test('CORS: scripts may read every header field of every kind of response', async () => {
  const { client, nest, clock } = app;
  const keys = nest.get(ApiKeysService);
  const { secret: reader } = await keys.create({ client: 'reader', scopes: ['pets:read'] });
  const { secret: limited } = await keys.create({ client: 'limited' });
  await keys.limit('limited', 1);
  const seen = new Map<number, HttpAnswer[]>();
  const see = async (method: string, path: string, { headers, ...call }: HttpCall = {}): Promise<HttpAnswer> => {
    const answer = await client.send(method, path, { ...call, headers: { ...headers, origin: ORIGIN } });
    seen.set(answer.status, [...(seen.get(answer.status) ?? []), answer]);
    return answer;
  };
  const key = { headers: { 'idempotency-key': 'cors' }, body: { name: 'Rex', categoryId: 7 } };
  await see('POST', '/v1/pets', key);
  await see('POST', '/v1/pets', key);
  await see('POST', '/v1/pets', { body: { name: 'Tom', categoryId: 7 } });
  const page = await see('GET', '/v1/pets?limit=1');
  await see('GET', '/v1/pets?limit=1', { headers: { 'if-none-match': page.headers.etag } });
  await see('GET', '/v1/test-samples');
  await see('POST', '/v1/test-samples/unavailable');
  await see('POST', '/v1/pets', { body: '{' });
  await see('GET', '/v1/pets', { apiKey: null });
  await see('POST', '/v1/pets', { body: '{}', apiKey: reader });
  await see('GET', '/v1/pets/0');
  await see('DELETE', '/v1/pets');
  await see('POST', '/v1/pets', { body: 'x', headers: { 'content-type': 'text/plain' } });
  await client.get('/v1/pets', { apiKey: limited });
  await see('GET', '/v1/pets', { apiKey: limited });
  clock.travelTo('2031-01-01T00:00:00Z');
  await see('GET', '/v1/pets/1');
  clock.comeBack();
  expect([...seen.keys()].sort()).toEqual([200, 201, 304, 400, 401, 403, 404, 405, 410, 415, 429, 503]);

  // Fields that scripts may always read (Fetch standard), and those of the connection and the browser, which they never need.
  const others =
    /^(cache-control|content-length|content-type|connection|date|keep-alive|x-content-type-options|access-control-.*)$/;
  const sent = new Set<string>();
  for (const { headers } of [...seen.values()].flat()) {
    const exposed = namesIn(headers['access-control-expose-headers']);
    const names = Object.keys(headers).filter((name) => !others.test(name));
    expect(exposed).toEqual(expect.arrayContaining(names));
    names.forEach((name) => sent.add(name));
  }
  // Only fields that the service sends are exposed.
  const exposed = namesIn(page.headers['access-control-expose-headers']).filter((name) => name !== 'cache-control');
  expect([...sent].sort()).toEqual(exposed.sort());
});
