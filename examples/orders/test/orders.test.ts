import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestApp, type TestApp } from 'petstore-service/testing';
import { application } from '../src/application.js';

let app: TestApp;
let petId: number;

before(async () => {
  app = await createTestApp({ ...application, databaseUrl: process.env.TEST_DATABASE_URL });
  const pet = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  petId = (pet.json as { id: number }).id;
});
after(() => app.close());

test('201: an order is placed once for its key, and listed', async () => {
  app.clock.travelTo('2026-11-22T09:30:00Z');
  const headers = { 'idempotency-key': '"first order"' };
  const placed = await app.client.post('/v1/store/orders', { petId, quantity: 2 }, { headers });
  const order = { id: 1, petId, quantity: 2, orderedAt: '2026-11-22T09:30:00.000Z' };
  assert.deepEqual([placed.status, { ...placed.json }], [201, order]);

  app.clock.comeBack();
  const again = await app.client.post('/v1/store/orders', { petId, quantity: 2 }, { headers });
  assert.deepEqual([again.status, again.text], [201, placed.text]);

  const list = await app.client.get(`/v1/store/orders?petId=${petId}`);
  assert.deepEqual([list.status, list.text], [200, `[${placed.text}]`]);
});

test('409: the pet does not exist', async () => {
  const { status, json } = await app.client.post('/v1/store/orders', { petId: 4242, quantity: 1 });
  assert.deepEqual([status, (json as { code: string }).code], [409, 'order_without_pet']);
});

test('403: a key without the scope', async () => {
  const apiKey = await app.createApiKey('orders:read');
  assert.equal((await app.client.post('/v1/store/orders', { petId, quantity: 1 }, { apiKey })).status, 403);
});

test('the document has the title and the operations of this project', async () => {
  const { json } = await app.client.get('/openapi.json');
  const { info, paths } = json as { info: { title: string }; paths: object };
  assert.deepEqual(
    [info.title, Object.keys(paths)],
    ['Pet Store with Orders', ['/pets', '/pets/{petId}', '/store/orders']],
  );
});
