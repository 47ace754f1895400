import { REVOKED_API_KEY } from '#errors';
import type { Database } from '#postgres';
import { Clock } from '#runtime';
import { createApiKey, hashApiKey } from './api-key-format.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { StoredApiKey } from './stored-api-key.js';

test('a look-up that is older than a change of its key answers its own callers, and is neither cached nor shared', async () => {
  const secret = createApiKey();
  const row = (revokedAt: Date | null): unknown[] => {
    const [now, hash] = [new Date(), hashApiKey(secret)];
    return ['1', '1', 'client', 'orders_', [], now, null, revokedAt, null, null, null, null, hash];
  };
  let stored = row(null);
  const queries: (() => void)[] = [];
  const readPrimary = (): Promise<unknown> => new Promise((resolve) => queries.push(() => resolve([stored])));
  const verifier = new ApiKeyVerifier({ readPrimary } as unknown as Database, new Clock());
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
  stored = row(new Date(0));
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
