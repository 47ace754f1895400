import { setTimeout as sleep } from 'node:timers/promises';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import type { HttpAnswer } from '../support/http-client.js';
import { RedisServer } from './support/redis-server.js';

/*
 * Instances share rate limits in Redis. Redis hangs, ends and restarts.
 */

function call(app: TestApp, apiKey: string): Promise<HttpAnswer> {
  return app.client.get('/v1/pets?limit=1', { apiKey });
}

/** Sends requests one after another, and returns how many got 200. */
async function countAllowed(app: TestApp, apiKey: string, calls: number): Promise<number> {
  let allowed = 0;
  for (let count = 0; count < calls; count++) {
    const { status } = await call(app, apiKey);
    expect([200, 429]).toContain(status);
    if (status === 200) allowed++;
  }
  return allowed;
}

let redis: RedisServer;
let database: TestDatabase;
let one: TestApp;
let two: TestApp;
beforeAll(async () => {
  redis = await RedisServer.start();
  database = await createTestDatabase();
  const settings = { REDIS_URL: redis.url, RATE_LIMIT_PER_MINUTE: '6' };
  one = await createTestApp({ database, settings });
  two = await createTestApp({ database, settings });
});
afterAll(async () => {
  await one.close();
  await two.close();
  await database.drop();
  await redis.stop();
});

async function newKey(client: string): Promise<string> {
  return (await one.nest.get(ApiKeysService).create({ client })).secret;
}

test('two instances share one limit', async () => {
  const key = await newKey('sharing');
  const fields: unknown[] = [];
  for (const app of [one, two, one, two, one, two]) {
    const { status, headers } = await call(app, key);
    fields.push([status, headers.ratelimit]);
  }
  expect(fields.map((field) => String(field))).toEqual(
    [5, 4, 3, 2, 1, 0].map((left) => `200,"client";r=${left};t=${(6 - left) * 10}`),
  );
  for (const app of [one, two]) {
    const { status, headers } = await call(app, key);
    expect([status, headers['retry-after']]).toEqual([429, '10']);
  }
  // Concurrent calls of one client take one token each.
  const bursting = await newKey('bursting');
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => call(index % 2 ? one : two, bursting)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(6);
});

test('a Redis that hangs delays requests by 50 ms at the most, and each instance counts by itself', async () => {
  const key = await newKey('hanging');
  await call(one, key);
  await call(two, key);
  redis.hang();
  const times: number[] = [];
  let allowed = 0;
  for (let count = 0; count < 10; count++) {
    const startedAt = performance.now();
    if ((await call(one, key)).status === 200) allowed++;
    times.push(performance.now() - startedAt);
  }
  expect(allowed).toBe(6);
  // Only the first request waits for Redis; then Redis is not asked for a second.
  expect(Math.max(...times)).toBeLessThan(250);
  expect(times.filter((time) => time > 45).length).toBeLessThanOrEqual(2);
  expect(one.log.text + two.log.text).toContain('Redis is away: each instance limits its clients by itself.');
  await redis.stop();
});

test('without Redis each instance counts by itself, and with Redis again they share the limit', async () => {
  const key = await newKey('returning');
  expect(await countAllowed(one, key, 8)).toBe(6);
  expect(await countAllowed(two, key, 8)).toBe(6);
  await redis.start();
  await sleep(3_500);
  expect((await countAllowed(one, key, 4)) + (await countAllowed(two, key, 4))).toBe(6);
  expect(one.log.text + two.log.text).toContain('Redis is back: the instances share their rate limits again.');
});

test('a service starts without Redis', async () => {
  const alone = await createTestApp({ database, settings: { REDIS_URL: 'redis://127.0.0.1:1' } });
  expect((await call(alone, alone.apiKey)).status).toBe(200);
  await alone.close();
});
