import { setTimeout as sleep } from 'node:timers/promises';
import { ApiKeysService } from '#api-keys';
import { KEY_TIME_TO_LIVE_MS } from '../../libs/api-keys/src/api-key.verifier.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, describeOnPostgresql } from '../support/database.js';
import { call, countAllowed } from '../support/calls.js';

describe('in memory', () => {
  let app: TestApp;
  let keys: ApiKeysService;
  beforeAll(async () => {
    app = await createTestApp({ settings: { RATE_LIMIT_PER_MINUTE: '6' } });
    keys = app.nest.get(ApiKeysService);
  });
  beforeEach(() => app.clock.travelTo(Date.now()));
  afterEach(() => app.clock.comeBack());
  afterAll(() => app.close());

  async function newKey(client: string, scopes?: string[]): Promise<string> {
    return (await keys.create({ client, scopes })).secret;
  }

  test('a burst passes, then 429 rate_limited with Retry-After until there is a token again', async () => {
    const key = await newKey('bursting');
    for (let left = 5; left >= 0; left--) {
      const { status, headers } = await call(app, key);
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        'ratelimit-policy': '"client";q=6;w=60',
        ratelimit: `"client";r=${left};t=${(6 - left) * 10}`,
      });
    }
    const refused = await call(app, key);
    expect(refused.json).toEqual({
      code: 'rate_limited',
      message: 'This client may call 6 times a minute. Try again in 10 s.',
      status: 429,
    });
    expect(refused.headers).toMatchObject({
      'retry-after': '10',
      'ratelimit-policy': '"client";q=6;w=60',
      ratelimit: '"client";r=0;t=60',
      'cache-control': 'no-store',
    });
    app.clock.travelTo(app.clock.now() + 9_999);
    expect((await call(app, key)).headers['retry-after']).toBe('1');
    app.clock.travelTo(app.clock.now() + 1);
    expect((await call(app, key)).status).toBe(200);
    expect((await call(app, key)).status).toBe(429);
  });

  test('the keys of a client share its limit, so that a rotation resets nothing', async () => {
    const { key, secret } = await keys.create({ client: 'rotating' });
    expect(await countAllowed(app, secret, 4)).toBe(4);
    const { secret: successor } = await keys.rotate(String(key.id));
    expect(await countAllowed(app, successor, 4)).toBe(2);
    expect((await call(app, secret)).status).toBe(429);
    expect((await call(app, await newKey('another'))).status).toBe(200);
  });

  test('429 comes after 401 and before 403, and every response after this check has RateLimit fields', async () => {
    const key = await newKey('reader', ['pets:read']);
    const forbidden = await app.client.post('/v1/pets', '{', { apiKey: key });
    expect([forbidden.status, forbidden.headers.ratelimit]).toEqual([403, '"client";r=5;t=10']);
    const notFound = await app.client.get('/v1/pets/x', { apiKey: key });
    expect([notFound.status, notFound.headers.ratelimit]).toEqual([404, '"client";r=4;t=20']);
    await countAllowed(app, key, 4);
    expect((await app.client.post('/v1/pets', '{', { apiKey: key })).status).toBe(429);
    const unauthorized = await call(app, 'unknown-key-unknown-key');
    expect([unauthorized.status, unauthorized.headers.ratelimit]).toEqual([401, undefined]);
  });

  test('requests that need no key have no rate limit', async () => {
    for (let count = 0; count < 10; count++) {
      const { status, headers } = await app.client.get('/health/live', { apiKey: null });
      expect([status, headers.ratelimit]).toEqual([200, undefined]);
    }
  });

  test("a client's own limit takes effect at once, and can be removed", async () => {
    const key = await newKey('limited');
    await keys.limit('limited', 2);
    const { headers } = await call(app, key);
    expect(headers).toMatchObject({ 'ratelimit-policy': '"client";q=2;w=60', ratelimit: '"client";r=1;t=30' });
    await keys.limit('limited', 0);
    for (let count = 0; count < 20; count++) {
      const answer = await call(app, key);
      expect([answer.status, answer.headers['ratelimit-policy']]).toEqual([200, undefined]);
    }
    await keys.limit('limited', null);
    expect((await call(app, key)).headers['ratelimit-policy']).toBe('"client";q=6;w=60');
    await expect(keys.limit('nobody', 1)).rejects.toThrow("No client has the name 'nobody'");
  });
});

describeOnPostgresql('two instances', () => {
  test("a client's own limit reaches the other one by notification", async () => {
    const database = await createTestDatabase();
    const one = await createTestApp({ database });
    const two = await createTestApp({ database });
    expect((await call(two, one.apiKey)).headers['ratelimit-policy']).toBe('"client";q=6000;w=60');
    await one.nest.get(ApiKeysService).limit('test-client', 12);
    const policy = async (): Promise<unknown> => (await call(two, one.apiKey)).headers['ratelimit-policy'];
    // Without the notification, the other instance would keep the old limit for the key's whole time to live.
    const deadline = performance.now() + KEY_TIME_TO_LIVE_MS / 2;
    while ((await policy()) !== '"client";q=12;w=60' && performance.now() < deadline) await sleep(20);
    expect(performance.now()).toBeLessThan(deadline);
    await one.close();
    await two.close();
    await database.drop();
  });
});
