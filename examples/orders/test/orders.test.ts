import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestApp, type TestApp } from 'petstore-service/testing';
import { AppModule } from '../src/app.module.js';

let app: TestApp;
const productId = 2;

before(async () => {
  app = await createTestApp(AppModule, { databaseUrl: process.env.TEST_DATABASE_URL });
});
after(() => app.close());

test('201: an order is placed once for its key, and listed', async () => {
  app.clock.travelTo('2026-11-22T09:30:00Z');
  const headers = { 'idempotency-key': '"first order"' };
  const placed = await app.client.post('/v1/orders', { productId, quantity: 2 }, { headers });
  const order = { id: 1, productId, quantity: 2, orderedAt: '2026-11-22T09:30:00.000Z' };
  assert.deepEqual([placed.status, { ...placed.json }], [201, order]);

  app.clock.comeBack();
  const again = await app.client.post('/v1/orders', { productId, quantity: 2 }, { headers });
  assert.deepEqual([again.status, again.text], [201, placed.text]);

  const list = await app.client.get(`/v1/orders?productId=${productId}`);
  assert.deepEqual([list.status, list.text], [200, `[${placed.text}]`]);
});

test('409: the product does not exist', async () => {
  const { status, json } = await app.client.post('/v1/orders', { productId: 4242, quantity: 1 });
  assert.deepEqual([status, (json as { code: string }).code], [409, 'order_without_product']);
});

test('403: a key without the scope', async () => {
  const apiKey = await app.createApiKey({ scopes: ['orders:read'] });
  assert.equal((await app.client.post('/v1/orders', { productId, quantity: 1 }, { apiKey })).status, 403);
});

test('entities and migrations describe the same tables', async () => {
  assert.deepEqual(await app.schemaDifferences(), []);
});

test('the document has the title and the operations of this project', async () => {
  const { json } = await app.client.get('/openapi.json');
  const { info, paths } = json as { info: { title: string }; paths: object };
  assert.deepEqual([info.title, Object.keys(paths)], ['Order Service', ['/orders']]);
});
