import { Controller, HttpCode, Module, Post } from '@nestjs/common';
import { Public } from '#api-keys';
import { createTestApp, type TestApp } from '../support/app.js';

@Public()
@Controller('test-actions')
class TestActionsController {
  @Post()
  @HttpCode(204)
  act(): void {}
}

@Module({ controllers: [TestActionsController] })
class ActionsModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [ActionsModule] });
});
afterAll(() => app.close());

describe('routes', () => {
  test.each([
    '/v1',
    '/v1/',
    '/v1/cats',
    '/v1/pets/',
    '/v1/pets/1/',
    '/v1/pets/1/toys',
    '/v1/Pets',
    '/V1/pets',
    '/pets',
    '/v2/pets',
    '//v1/pets',
    '/v1//pets',
    '/v1/pets%2F1',
    '/favicon.ico',
    '/v1/pets/%ff',
    '/v1/pets/%zz',
  ])('404 route_not_found, without a key: %s', async (path) => {
    const answer = await app.client.get(path, { apiKey: null });
    expect(answer.json).toEqual({ code: 'route_not_found', status: 404, message: expect.any(String) as string });
  });

  test.each([
    ['/v1/pets', 'GET, HEAD, OPTIONS, POST', ['PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND']],
    ['/v1/pets/1', 'GET, HEAD, OPTIONS', ['POST', 'PUT', 'PATCH', 'DELETE']],
    ['/v1/test-actions', 'OPTIONS, POST', ['GET', 'HEAD']],
  ])('405 method_not_allowed with Allow, without a key: %s', async (path, allow, methods) => {
    for (const method of methods) {
      const answer = await app.client.send(method, path, { apiKey: null });
      expect([method, answer.status, answer.headers.allow]).toEqual([method, 405, allow]);
      if (method !== 'HEAD') {
        expect(answer.json).toMatchObject({ code: 'method_not_allowed', status: 405 });
      }
    }
  });

  test.each([
    ['/v1/pets', 'GET, HEAD, OPTIONS, POST'],
    ['/v1/pets/1', 'GET, HEAD, OPTIONS'],
  ])('OPTIONS %s: 204 with Allow, without a key', async (path, allow) => {
    const answer = await app.client.send('OPTIONS', path, { apiKey: null });
    expect([answer.status, answer.headers.allow, answer.text]).toEqual([204, allow, '']);
  });

  test('HEAD is GET without its body', async () => {
    await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    const get = await app.client.get('/v1/pets?limit=1');
    const head = await app.client.send('HEAD', '/v1/pets?limit=1');
    expect([head.status, head.text]).toEqual([200, '']);
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control', 'vary', 'link']) {
      expect([name, head.headers[name]]).toEqual([name, get.headers[name]]);
    }
    expect((await app.client.send('HEAD', '/v1/pets', { apiKey: null })).status).toBe(401);
  });

  test('Accept is not negotiated', async () => {
    expect((await app.client.get('/v1/pets', { headers: { accept: 'text/html' } })).status).toBe(200);
  });
});

describe('X-Request-Id', () => {
  test.each(['a', 'A-z_0.9', 'x'.repeat(128)])("the client's own: %s", async (id) => {
    expect((await app.client.get('/v1/pets', { headers: { 'x-request-id': id } })).headers['x-request-id']).toBe(id);
  });

  test.each(['x'.repeat(129), 'a b', 'a"b', 'ä', '', undefined])('a new one instead of %j', async (id) => {
    const sent = id === undefined ? undefined : Buffer.from(id).toString('latin1');
    const answer = await app.client.get('/v1/nowhere', { headers: { 'x-request-id': sent } });
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});
