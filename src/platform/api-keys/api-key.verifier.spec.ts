import { Clock } from '../clock.js';
import { REVOKED_API_KEY } from '../errors/error-catalogue.js';
import { createApiKey, hashApiKey } from './api-key-format.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { ApiKeyRepository, StoredApiKey } from './api-key.repository.js';

test('a look-up that is older than a change of its key answers its own callers, and is neither cached nor shared', async () => {
  const secret = createApiKey();
  const key = { id: 1n, client: { id: 1n }, revokedAt: null, expiresAt: null } as StoredApiKey;
  const stored = new Map([[hashApiKey(secret).toString('base64'), key]]);
  const queries: (() => void)[] = [];
  const findByHashes = (): Promise<unknown> => new Promise((resolve) => queries.push(() => resolve(new Map(stored))));
  const verifier = new ApiKeyVerifier({ findByHashes } as unknown as ApiKeyRepository, new Clock());
  const nextQuery = async (): Promise<void> => {
    while (queries.length === 0) await new Promise((next) => setTimeout(next, 1));
    (queries.shift() as () => void)();
  };

  const before = verifier.verify(secret);
  while (queries.length === 0) await new Promise((next) => setTimeout(next, 1));
  verifier.forget();
  const after = verifier.verify(secret) as Promise<StoredApiKey>;
  await nextQuery();
  expect(await before).toBe(key);
  stored.set(hashApiKey(secret).toString('base64'), { ...key, revokedAt: new Date(0) });
  await Promise.all([nextQuery(), expect(after).rejects.toMatchObject({ definition: REVOKED_API_KEY })]);
  expect(() => verifier.verify(secret)).toThrow(REVOKED_API_KEY.message);
});
