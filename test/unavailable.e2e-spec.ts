import { setTimeout as sleep } from 'node:timers/promises';
import { createTestApp, type TestApp } from './support/app.js';
import { createTestDatabase } from './support/database.js';
import { administer } from './support/postgresql-database.js';
import { handedOver } from './support/engines.js';

/* The database goes away and comes back. The embedded engine is part of the process and cannot. */

let app: TestApp;
let name: string;
beforeAll(async () => {
  app = await createTestApp({ settings: { ACQUIRE_TIMEOUT_MS: '1000' } });
  name = new URL(app.database.settings['DATABASE_URL'] ?? '').pathname.slice(1);
});
afterAll(async () => {
  await allowConnections(true);
  await app.close();
});

async function allowConnections(allowed: boolean): Promise<void> {
  const server = handedOver('serverUrl');
  await administer(server, `ALTER DATABASE ${name} ALLOW_CONNECTIONS ${allowed}`);
  if (!allowed) {
    await administer(server, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  }
}

test('503 unavailable with Retry-After while the database is away; liveness stays; all is well when it is back', async () => {
  const created = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  expect(created.status).toBe(201);
  await allowConnections(false);

  const calls = [
    app.client.get('/v1/pets'),
    app.client.get(`/v1/pets/${created.json.id}`),
    app.client.post('/v1/pets', { name: 'Max', categoryId: 7 }),
  ];
  for (const answer of await Promise.all(calls)) {
    expect(answer.json).toEqual({
      code: 'unavailable',
      message: 'The database is not available. Try again.',
      status: 503,
    });
    expect(answer.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
  }
  expect((await app.client.get('/health/live', { apiKey: null })).status).toBe(200);
  await sleep(1_100);
  expect((await app.client.get('/health/ready', { apiKey: null })).json).toMatchObject({
    code: 'unavailable',
    message: 'The database does not answer.',
  });
  // The operator is told why, and not once for every request.
  const warnings = app.log.lines.filter(({ level, msg }) => level === 40 && msg.startsWith('Answered 503: '));
  expect(warnings.length).toBeGreaterThanOrEqual(1);
  expect(warnings.length).toBeLessThanOrEqual(2);

  await allowConnections(true);
  await sleep(1_100);
  expect((await app.client.get(`/v1/pets/${created.json.id}`)).text).toBe(created.text);
  expect((await app.client.get('/health/ready', { apiKey: null })).status).toBe(200);
});

test('lists are read from a replica, everything else from the primary, which also steps in', async () => {
  const primary = await createTestApp();
  const replica = await createTestDatabase();
  const replicaUrl = replica.settings['DATABASE_URL'] ?? '';
  const reading = await createTestApp({
    database: primary.database,
    settings: { DATABASE_REPLICA_URLS: replicaUrl },
  });
  const created = await reading.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  expect((await reading.client.get(`/v1/pets/${created.json.id}`)).text).toBe(created.text);
  // This replica is another database, and so behind for ever.
  expect((await reading.client.get('/v1/pets')).text).toBe('[]');
  expect((await primary.client.get('/v1/pets')).text).toBe(`[${created.text}]`);

  await replica.drop();
  expect((await reading.client.get('/v1/pets')).text).toBe(`[${created.text}]`);
  await reading.close();
  await primary.close();
});
