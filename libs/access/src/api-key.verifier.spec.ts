import { jest } from '@jest/globals';
import { ApiError, EXPIRED_API_KEY, INVALID_API_KEY, REVOKED_API_KEY, UNAVAILABLE } from '#errors';
import type { Database } from '#postgres';
import { Clock } from '#runtime';
import { createApiKey, hashApiKey } from './api-key-format.js';
import { ApiKeyVerifier, KEY_TIME_TO_LIVE_MS, REFRESH_INTERVAL_MS } from './api-key.verifier.js';

const CONFIG = { product: { name: 'orders', command: 'orders', apiKeyPrefix: 'orders_' } };

const newKey = (): string => createApiKey(CONFIG.product.apiKeyPrefix);

/** A database of keys, by their secrets: what it has of each, and the number of keys that each query has asked for. */
class Keys {
  readonly stored = new Map<string, { expiresAt?: string; revokedAt?: string }>();
  readonly queries: number[] = [];
  /** Called before each query is answered. */
  answer: () => Promise<void> = () => Promise.resolve();
  readonly verifier = new ApiKeyVerifier({ read: this.read.bind(this) } as unknown as Database, new Clock(), CONFIG);

  add(secret = newKey()): string {
    this.stored.set(secret, {});
    return secret;
  }

  private async read(_: unknown, values: [Buffer | Buffer[]]): Promise<unknown> {
    const hashes = values.flat();
    this.queries.push(hashes.length);
    const rows = [...this.stored].flatMap(([secret, { expiresAt = null, revokedAt = null }], index) => {
      const hash = hashApiKey(secret);
      const row = [`${index}`, '1', 'client', 'orders_', '[]', '0', expiresAt, revokedAt, null, null, null, null];
      return hashes.some((hashed) => hashed.equals(hash)) ? [[...row, hash.toString('base64')]] : [];
    });
    await this.answer();
    return rows;
  }
}

let keys: Keys;
let verifier: ApiKeyVerifier;
beforeEach(() => {
  jest.useFakeTimers({ now: 1_000_000, doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
  keys = new Keys();
  ({ verifier } = keys);
  verifier.onApplicationBootstrap();
});
afterEach(() => {
  verifier.onApplicationShutdown();
  jest.useRealTimers();
});

const passes = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const isKnown = (secret: string): boolean => !(verifier.verify(secret) instanceof Promise);

test('a key that is not used counts for one second from the beginning of its look-up, and costs no query', async () => {
  const secret = keys.add();
  keys.answer = () => passes(400);
  await verifier.verify(secret);
  keys.answer = () => Promise.resolve();
  await passes(KEY_TIME_TO_LIVE_MS - 400 - 1);
  expect(keys.queries).toEqual([1]);
  expect(isKnown(secret)).toBe(true);
  await passes(1);
  keys.stored.set(secret, { revokedAt: '0' });
  await expect(verifier.verify(secret)).rejects.toMatchObject({ definition: REVOKED_API_KEY });
  expect(keys.queries).toEqual([1, 1]);
  await passes(10 * REFRESH_INTERVAL_MS);
  expect(keys.queries).toEqual([1, 1]);
});

test('a request that waits for its look-up is answered by it, however long it takes, and the next one is not', async () => {
  const secret = keys.add();
  keys.answer = () => passes(KEY_TIME_TO_LIVE_MS);
  expect(await verifier.verify(secret)).toMatchObject({ id: 0n });
  expect(isKnown(secret)).toBe(false);
});

test.each([-3_600_000, -300])('a clock that is set by %d ms prolongs no key', async (ms) => {
  const secret = keys.add();
  await verifier.verify(secret);
  await passes(500);
  jest.setSystemTime(Date.now() + ms);
  await passes(KEY_TIME_TO_LIVE_MS - 500);
  expect(isKnown(secret)).toBe(false);
});

test('a key does not outlive a sleep of the machine, in which performance.now() stands still', async () => {
  const secret = keys.add();
  await verifier.verify(secret);
  jest.setSystemTime(Date.now() + KEY_TIME_TO_LIVE_MS);
  expect(isKnown(secret)).toBe(false);
});

test('one query looks up all keys in use in the background, so that no request waits, and the other keys are left out', async () => {
  const used = Array.from({ length: 30 }, () => keys.add());
  const unused = keys.add();
  await Promise.all([...used, unused].map(async (secret) => verifier.verify(secret)));
  keys.queries.length = 0;
  for (let passed = 0; passed < 4 * REFRESH_INTERVAL_MS; passed += 50) {
    expect(used.every(isKnown)).toBe(true);
    await passes(50);
  }
  expect(keys.queries).toEqual([30, 30, 30, 30]);
});

test('a background look-up has at most 1000 keys a query, and only one runs', async () => {
  const used = Array.from({ length: 1_001 }, () => keys.add());
  for (let count = 0; count < used.length; count += 100)
    await Promise.all(used.slice(count, count + 100).map(async (secret) => verifier.verify(secret)));
  used.forEach(isKnown);
  keys.queries.length = 0;
  let release = (): void => undefined;
  keys.answer = () => new Promise((resolve) => (release = resolve));
  await passes(3 * REFRESH_INTERVAL_MS);
  expect(keys.queries).toEqual([1_000]);
  release();
  // The queue goes on in the next turn of the event loop.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(keys.queries).toEqual([1_000, 1]);
});

test('when a background look-up fails, the next request waits for its own, and gets the error of it', async () => {
  const secret = keys.add();
  await verifier.verify(secret);
  expect(isKnown(secret)).toBe(true);
  keys.answer = () => Promise.reject(new ApiError(UNAVAILABLE));
  await passes(KEY_TIME_TO_LIVE_MS - 1);
  expect(keys.queries).toEqual([1, 1]);
  expect(isKnown(secret)).toBe(true);
  await passes(1);
  await expect(verifier.verify(secret)).rejects.toMatchObject({ definition: UNAVAILABLE });
  keys.answer = () => Promise.resolve();
  expect(await verifier.verify(secret)).toMatchObject({ id: 0n });
});

test.each([
  ['revoked', { revokedAt: '0' }],
  ['expired', { expiresAt: '1000000' }],
  ['gone', undefined],
])('a watched key is looked up in the background, and a look-up that finds it %s says so', async (_, change) => {
  const [secret, other] = [keys.add(), keys.add()];
  const refused: string[] = [];
  const forget = [verifier.watch(secret, () => refused.push('one')), verifier.watch(secret, () => refused.push('two'))];
  forget.push(verifier.watch(other, () => refused.push('other')));
  await passes(REFRESH_INTERVAL_MS);
  expect([keys.queries, refused]).toEqual([[2], []]);
  if (change === undefined) keys.stored.delete(secret);
  else keys.stored.set(secret, change);
  keys.answer = () => Promise.reject(new ApiError(UNAVAILABLE));
  await passes(REFRESH_INTERVAL_MS);
  expect([keys.queries, refused]).toEqual([[2, 2], []]);
  keys.answer = () => Promise.resolve();
  await passes(REFRESH_INTERVAL_MS);
  expect(refused).toEqual(['one', 'two']);
  forget.forEach((stop) => stop());
  await passes(2 * REFRESH_INTERVAL_MS);
  expect(keys.queries).toEqual([2, 2, 2]);
});

test('a watched key that expires while no look-up succeeds is refused', async () => {
  const secret = keys.add();
  keys.stored.set(secret, { expiresAt: String(1_000_000 + 2 * REFRESH_INTERVAL_MS) });
  const refused = jest.fn();
  const stop = verifier.watch(secret, refused);
  await passes(REFRESH_INTERVAL_MS);
  keys.answer = () => Promise.reject(new ApiError(UNAVAILABLE));
  expect(refused).not.toHaveBeenCalled();
  await passes(2 * REFRESH_INTERVAL_MS);
  expect(refused).toHaveBeenCalled();
  stop();
});

test.each([
  [EXPIRED_API_KEY, { expiresAt: 'tomorrow' }],
  [EXPIRED_API_KEY, { expiresAt: '' }],
  [EXPIRED_API_KEY, { expiresAt: 'NaN' }],
  [REVOKED_API_KEY, { revokedAt: 'yesterday' }],
])('401 %p: the end or revocation of a key cannot be read: %p', async (definition, unreadable) => {
  const secret = newKey();
  keys.stored.set(secret, unreadable);
  await expect(verifier.verify(secret)).rejects.toMatchObject({ definition });
  expect(() => verifier.verify(secret)).toThrow(definition.message);
});

test('a key that was valid before waits for no look-up of tokens that were not, of which one query has few', async () => {
  const secret = keys.add();
  expect(verifier.knownClient(secret)).toBeUndefined();
  await verifier.verify(secret);
  await passes(KEY_TIME_TO_LIVE_MS);
  // Before the next look-up, too: a client must not lose its share.
  expect(verifier.knownClient(secret)).toBe(1n);
  keys.queries.length = 0;
  // Those of others get no response.
  keys.answer = () => (keys.queries.at(-1) === 1 ? Promise.resolve() : new Promise(() => undefined));
  for (let count = 0; count < 100; count++) Promise.resolve(verifier.verify(newKey())).catch(() => undefined);
  await passes(0);
  expect(keys.queries).toEqual([25]);
  expect(await verifier.verify(secret)).toMatchObject({ id: 0n });
  expect(keys.queries).toEqual([25, 1]);
});

test('a key that was valid and is gone is refused by a look-up', async () => {
  const secret = keys.add();
  await verifier.verify(secret);
  keys.stored.clear();
  await passes(KEY_TIME_TO_LIVE_MS);
  await expect(verifier.verify(secret)).rejects.toMatchObject({ definition: INVALID_API_KEY });
  expect(keys.queries).toEqual([1, 1]);
});
