import { type INestApplication, type MiddlewareConsumer, Module, type NestModule } from '@nestjs/common';
import express from 'express';
import { requireScopes } from '#access';
import { createTestApp, type TestApp } from '../support/app.js';

/** Answers by itself, as the routers of bull-board and proxies do. */
const router = express.Router().get('/', (_, response) => void response.send('the queues'));

@Module({})
class QueuesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(requireScopes('queues:read'), router).forRoutes('/partner');
  }
}

let app: TestApp;
beforeAll(async () => {
  const setUp = (app: INestApplication): void => void app.use('/queues', requireScopes('queues:read'), router);
  app = await createTestApp({ features: [QueuesModule], setUp });
});
afterAll(() => app.close());

test.each(['/queues', '/partner'])(
  'requireScopes admits to middleware whom @RequireScopes admits to a handler: %s',
  async (path) => {
    const apiKey = await app.createApiKey({ scopes: ['queues:read'] });
    const served = await app.client.get(path, { apiKey });
    expect([served.status, served.text]).toEqual([200, 'the queues']);
    expect(served.headers.ratelimit).toMatch(/^"client";r=/);
    const others = [null, 'pets_wrong', await app.createApiKey({ scopes: ['pets:read'] })];
    const refusals = others.map(
      async (other) => (await app.client.get(path, { apiKey: other })).headers['www-authenticate'],
    );
    expect(await Promise.all(refusals)).toEqual([
      'Bearer realm="petstore"',
      'Bearer realm="petstore", error="invalid_token", error_description="The API key is not known"',
      'Bearer realm="petstore", error="insufficient_scope", scope="queues:read"',
    ]);
  },
);

test('requireScopes refuses at once what is no scope', () => {
  expect(() => requireScopes('admin')).toThrow("'admin' is no scope");
});
