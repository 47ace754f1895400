import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestApp, type HttpAnswer, type TestApp } from 'petstore-service/testing';
import { AppModule } from '../src/app.module.js';

const PATH = '/v1/sample-things';

let app: TestApp;
let apiKey: string;

before(async () => {
  app = await createTestApp(AppModule, { databaseUrl: process.env.TEST_DATABASE_URL });
  apiKey = await app.createApiKey({ scopes: ['sample-things:read', 'sample-things:write', 'sample-things:delete'] });
});
after(() => app.close());

/** Adds one. */
function add(name: string, headers = {}): Promise<HttpAnswer> {
  return app.client.post(PATH, { name }, { apiKey, headers });
}

test('201: one is added, and found at its Location', async () => {
  const created = await add('First');
  assert.deepEqual([created.status, created.json.name], [201, 'First']);
  const found = await app.client.get(new URL(created.headers.location ?? '').pathname, { apiKey });
  assert.deepEqual([found.status, found.text], [200, created.text]);
});

test('201: the same Idempotency-Key adds one, however often it is sent', async () => {
  const headers = { 'idempotency-key': 'the-same' };
  const first = await add('Once', headers);
  const second = await add('Once', headers);
  assert.deepEqual([second.status, second.text], [201, first.text]);
});

test('200: a page of them', async () => {
  const { text } = await add('Listed');
  const page = await app.client.get(PATH, { apiKey });
  assert.equal(page.status, 200);
  assert.ok(page.text.includes(text));
});

test('400: a name is needed', async () => {
  const { status, json } = await app.client.post(PATH, {}, { apiKey });
  assert.deepEqual([status, json.message], [400, 'name is required']);
});

test('204, then 404: one is deleted', async () => {
  const { headers } = await add('Deleted');
  const { pathname } = new URL(headers.location ?? '');
  assert.equal((await app.client.send('DELETE', pathname, { apiKey })).status, 204);
  const { status, json } = await app.client.get(pathname, { apiKey });
  assert.deepEqual([status, json.code], [404, 'sample_thing_not_found']);
});

test('entities and migrations describe the same tables', async () => {
  assert.deepEqual(await app.schemaDifferences(), []);
});

test('403: a key without the scope', async () => {
  const reader = await app.createApiKey({ scopes: ['sample-things:read'] });
  assert.equal((await app.client.post(PATH, { name: 'Refused' }, { apiKey: reader })).status, 403);
});
