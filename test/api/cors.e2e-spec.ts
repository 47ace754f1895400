import { ApiHeader, ApiOkResponse } from '@nestjs/swagger';
import { Controller, Get, Header, Module, Post } from '@nestjs/common';
import { ApiKeysService, Public } from '#api-keys';
import { Deprecated, Stability } from '#deprecation';
import { ApiError, UNAVAILABLE } from '#errors';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer, HttpCall } from '../support/http-client.js';
import { rawRequest } from '../support/raw-request.js';

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

function preflight(path: string, origin = ORIGIN): Promise<HttpAnswer> {
  const headers = {
    origin,
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'x-unknown',
  };
  return app.client.send('OPTIONS', path, { apiKey: null, headers });
}

const namesIn = (list: string | string[] | undefined): string[] =>
  String(list ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter(Boolean);

test.each([
  ['/v1/pets', 'GET, HEAD, OPTIONS, POST'],
  ['/v1/pets/1', 'GET, HEAD, OPTIONS'],
  ['/v1/test-samples/unavailable', 'OPTIONS, POST'],
])('CORS: a preflight of %s is answered 204 and offers exactly %s', async (path, methods) => {
  const answer = await preflight(path);
  expect(answer.status).toBe(204);
  expect(answer.headers).toMatchObject({
    allow: methods,
    'access-control-allow-methods': methods,
    'access-control-allow-origin': ORIGIN,
    'access-control-max-age': '3600',
  });
});

test('CORS: a preflight offers the request header fields that the service and its modules read, and no others', async () => {
  const { headers } = await preflight('/v1/pets');
  expect(namesIn(headers['access-control-allow-headers'])).toEqual([
    'authorization',
    'content-type',
    'if-none-match',
    'traceparent',
    'x-request-id',
    'idempotency-key',
    'x-sample',
  ]);
});

test('CORS: a preflight from an unknown origin is offered nothing', async () => {
  const { status, headers } = await preflight('/v1/pets', 'https://evil.example');
  expect(status).toBe(204);
  expect(headers['access-control-allow-origin']).toBeUndefined();
  expect(headers['access-control-allow-methods']).toBeUndefined();
});

test('CORS: scripts may read every header field of every kind of answer', async () => {
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

test('CORS: answers name a known origin, and Vary lists Origin and Authorization; unknown origins get nothing', async () => {
  const known = await app.client.get('/v1/pets', { headers: { origin: 'http://localhost:5173' } });
  expect(known.headers).toMatchObject({
    'access-control-allow-origin': 'http://localhost:5173',
    vary: 'Origin, Authorization',
  });
  const unknown = await app.client.get('/v1/pets', { headers: { origin: 'https://evil.example' } });
  expect(unknown.headers['access-control-allow-origin']).toBeUndefined();
  const refused = await app.client.get('/v1/pets', { apiKey: null, headers: { origin: 'http://localhost:5173' } });
  expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([401, 'http://localhost:5173']);
});

describe('CORS: answers that are given before the route is known', () => {
  const fields = (answer: string): unknown[] => [
    Number(/^HTTP\/1\.1 (\d+) /.exec(answer)?.[1]),
    /^access-control-allow-origin: (.*)$/im.exec(answer)?.[1],
    /^access-control-expose-headers: .*\bx-request-id\b/im.test(answer),
    /^vary: (.*)$/im.exec(answer)?.[1],
  ];
  const request = (line: string, ...lines: string[]): string =>
    [line, 'Connection: close', ...lines, '', ''].join('\r\n');

  test.each([
    [414, request(`GET /v1/pets?${'x'.repeat(8192)} HTTP/1.1`, 'Host: x', `Origin: ${ORIGIN}`)],
    [400, request('GET /v1/pets HTTP/1.1', 'Host: x y', `Origin: ${ORIGIN}`)],
    [417, request('GET /v1/pets HTTP/1.1', 'Host: x', 'Expect: a-miracle', `Origin: ${ORIGIN}`)],
  ])('%i names a known origin, and no other', async (status, bytes) => {
    expect(fields(await rawRequest(app.port, bytes))).toEqual([status, ORIGIN, true, 'Origin']);
    const other = bytes.replace(ORIGIN, 'https://evil.example');
    expect(fields(await rawRequest(app.port, other)).slice(0, 2)).toEqual([status, undefined]);
  });

  test('400 for a broken body after a request in flight', async () => {
    const broken = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nTransfer-Encoding: chunked\r\n\r\nnot-hex\r\n`;
    const answer = await rawRequest(app.port, `GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n${broken}`);
    expect(fields(answer.slice(answer.lastIndexOf('HTTP/1.1 ')))).toEqual([400, ORIGIN, true, 'Origin']);
  });
});

test('CORS is off unless CORS_ORIGINS is set', async () => {
  const off = await createTestApp();
  const answer = await off.client.get('/v1/pets', { headers: { origin: 'https://app.example.com' } });
  expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  await off.close();
});
