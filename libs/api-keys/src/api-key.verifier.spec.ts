import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { EXPIRED_API_KEY, REVOKED_API_KEY } from '#errors';
import type { Database } from '#postgres';
import { Clock } from '#runtime';
import { createApiKey, hashApiKey } from './api-key-format.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { StoredApiKey } from './stored-api-key.js';

const CONFIG = { product: { name: 'orders', command: 'orders', apiKeyPrefix: 'orders_' } };

test('a look-up that is older than a change of its key answers its own callers, and is neither cached nor shared', async () => {
  const secret = createApiKey(CONFIG.product.apiKeyPrefix);
  const row = (revokedAt: string | null): unknown[] => {
    const hash = hashApiKey(secret).toString('base64');
    return ['1', '1', 'client', 'orders_', '[]', '0', null, revokedAt, null, null, null, null, hash];
  };
  let stored = row(null);
  const queries: (() => void)[] = [];
  const read = (): Promise<unknown> => new Promise((resolve) => queries.push(() => resolve([stored])));
  const verifier = new ApiKeyVerifier({ read } as unknown as Database, new Clock(), CONFIG);
  const nextQuery = async (): Promise<void> => {
    while (queries.length === 0) await new Promise((next) => setTimeout(next, 1));
    (queries.shift() as () => void)();
  };

  const before = verifier.verify(secret);
  while (queries.length === 0) await new Promise((next) => setTimeout(next, 1));
  verifier.forget();
  const after = verifier.verify(secret) as Promise<StoredApiKey>;
  await nextQuery();
  expect(await before).toMatchObject({ id: 1n, revokedAt: null });
  stored = row('0');
  const next = verifier.verify(secret);
  expect(next).toBeInstanceOf(Promise);
  await Promise.all([
    nextQuery(),
    nextQuery(),
    expect(next).rejects.toThrow(),
    expect(after).rejects.toMatchObject({ definition: REVOKED_API_KEY }),
  ]);
  expect(() => verifier.verify(secret)).toThrow(REVOKED_API_KEY.message);
});

test.each([
  [EXPIRED_API_KEY, 'tomorrow', null],
  [EXPIRED_API_KEY, '', null],
  [EXPIRED_API_KEY, 'NaN', null],
  [REVOKED_API_KEY, null, 'yesterday'],
])(
  '401 %p and an ERROR in the log: the end or revocation of a key cannot be read: %p, %p',
  async (definition, expiresAt, revokedAt) => {
    const error = jest.spyOn(Logger.prototype, 'error').mockReturnValue(undefined);
    const secret = createApiKey(CONFIG.product.apiKeyPrefix);
    const hash = hashApiKey(secret).toString('base64');
    const row = ['7', '1', 'client', 'orders_', '[]', '0', expiresAt, revokedAt, null, null, null, null, hash];
    const verifier = new ApiKeyVerifier(
      { read: () => Promise.resolve([row]) } as unknown as Database,
      new Clock(),
      CONFIG,
    );
    await expect(verifier.verify(secret)).rejects.toMatchObject({ definition });
    // From memory: refused again, and reported once.
    expect(() => verifier.verify(secret)).toThrow(definition.message);
    expect(error.mock.calls).toEqual([[expect.stringContaining('API key 7 is refused')]]);
    error.mockRestore();
  },
);
test('a key that was valid before waits for no look-up of tokens that were not, of which one query has few', async () => {
  const secret = createApiKey(CONFIG.product.apiKeyPrefix);
  const hash = hashApiKey(secret).toString('base64');
  const row = ['1', '1', 'client', 'orders_', '[]', '0', null, null, null, null, null, null, hash];
  const queries: number[] = [];
  const read = (_: unknown, [hashes]: [Buffer[]]): Promise<unknown> => {
    queries.push(hashes.length);
    const isAsked = hashes.some((hashed) => hashed.equals(hashApiKey(secret)));
    // Others get no response.
    return isAsked ? Promise.resolve([row]) : new Promise(() => undefined);
  };
  const verifier = new ApiKeyVerifier({ read } as unknown as Database, new Clock(), CONFIG);
  expect(verifier.knownClient(secret)).toBeUndefined();
  await verifier.verify(secret);
  expect(verifier.knownClient(secret)).toBe(1n);
  verifier.forget();
  // Before the next look-up, too: a change of any key must not cost the others their share.
  expect(verifier.knownClient(secret)).toBe(1n);
  // But not as a key: it may be the one that was revoked.
  expect(verifier.lastKnown(secret)).toBeUndefined();
  const unknown = Array.from({ length: 100 }, () =>
    Promise.resolve(verifier.verify(createApiKey(CONFIG.product.apiKeyPrefix))),
  );
  unknown.forEach((refused) => void refused.catch(() => undefined));
  expect(await verifier.verify(secret)).toMatchObject({ id: 1n });
  while (queries.length < 3) await new Promise((next) => setTimeout(next, 1));
  expect(queries.toSorted()).toEqual([1, 1, 25]);
});
