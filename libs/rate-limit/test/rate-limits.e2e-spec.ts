import { ApiKeysService } from '#access';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import { call, countAllowed } from '../../../test/support/calls.js';

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
});
