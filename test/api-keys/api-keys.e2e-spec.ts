import { ApiKeysService } from '#access';
import { Database } from '#postgres';
import { createApiKey, hashApiKey } from '../../libs/access/src/api-key-format.js';
import { ApiKeyVerifier, KEY_TIME_TO_LIVE_MS } from '../../libs/access/src/api-key.verifier.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, describeOnPostgresql, type TestDatabase } from '../support/database.js';
import { call } from '../support/calls.js';

const HOUR = 3_600_000;

/** Records the queries for keys that an application sends from now on: the number of tokens of each. */
function watchQueries(app: TestApp): number[] {
  const database = app.nest.get(Database);
  const read = database.read.bind(database);
  const sizes: number[] = [];
  database.read = (statement, values) => {
    if (statement.name.startsWith('api_key_find_by_hash')) sizes.push(values.flat().length);
    return read(statement, values);
  };
  return sizes;
}

async function statuses(apps: TestApp[], apiKey: string): Promise<number[]> {
  return Promise.all(apps.map(async (app) => (await call(app, apiKey)).status));
}

describe('one instance', () => {
  let app: TestApp;
  let keys: ApiKeysService;
  beforeAll(async () => {
    app = await createTestApp();
    keys = app.nest.get(ApiKeysService);
  });
  afterAll(() => app.close());
  afterEach(() => app.clock.comeBack());

  test('requests with a key in use share few queries', async () => {
    const queries = watchQueries(app);
    for (let count = 0; count < 50; count++) expect((await call(app, app.apiKey)).status).toBe(200);
    expect(queries.length).toBeLessThan(25);
  });

  test('simultaneous requests with a new key share its look-up', async () => {
    const { secret } = await keys.create({ client: 'shared' });
    const queries = watchQueries(app);
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(app, secret)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(queries.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(3);
  });

  test('many different invalid keys share few queries, and evict no valid key', async () => {
    await call(app, app.apiKey);
    const verifier = app.nest.get(ApiKeyVerifier);
    const queries = watchQueries(app);
    const startedAt = performance.now();
    let asked = 0;
    while (asked < 11_000) {
      const batch = Array.from({ length: 500 }, () => createApiKey('pets_'));
      asked += batch.length;
      await Promise.all(
        batch.map(async (token) => {
          await expect(Promise.resolve(verifier.verify(token))).rejects.toMatchObject({
            definition: { code: 'invalid_api_key' },
          });
        }),
      );
    }
    // At most one query in 10 ms, whatever the number of keys, and one for the key in use.
    expect(queries.length).toBeLessThanOrEqual((performance.now() - startedAt) / 10 + 2);
    expect(verifier.knownClient(app.apiKey)).toBeDefined();
  });

  test('503 unavailable: more unknown keys wait for the database than the limit', async () => {
    const verifier = app.nest.get(ApiKeyVerifier);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 2_500 }, async () => verifier.verify(createApiKey('pets_'))),
    );
    const codes = outcomes.map(
      (outcome) => (outcome as { reason: { definition: { code: string } } }).reason.definition.code,
    );
    expect(codes.filter((code) => code === 'unavailable').length).toBeGreaterThan(0);
    expect(codes.filter((code) => code === 'invalid_api_key').length).toBeGreaterThanOrEqual(1_000);
  });

  test.each(['', ' acme', 'acme ', 'ac\nme', 'x'.repeat(256)])("the client's name %j is refused", async (client) => {
    await expect(keys.create({ client })).rejects.toThrow("A client's name has 1 to 255 printable characters");
  });

  test('a key is named by its id, its beginning or all of it; a similar text names none, and no message repeats it', async () => {
    const own = 'company-key-of-production-1-0123456789';
    await keys.ensureBootstrapKey(own);
    const { key, secret } = await keys.create({ client: 'named' });
    const [id, prefix] = [String(key.id), key.prefix];
    for (const reference of [id, secret, prefix, `${prefix}…`, secret.slice(0, 10)])
      expect(await keys.find(reference)).toMatchObject({ id: key.id });
    for (const reference of [own, 'company-key-']) {
      expect(await keys.find(reference)).toMatchObject({ client: { name: 'bootstrap' } });
    }
    const similar = [
      own.replace('-1-', '-2-'),
      `${secret.slice(0, 12)}${'x'.repeat(42)}`,
      secret.slice(0, 13),
      'company\0',
      '',
    ];
    for (const other of similar) {
      const error = (await keys.find(other).catch((reason: unknown) => reason)) as Error;
      expect([error.name, error.message]).toEqual(['ApiKeyRequestError', expect.stringMatching(/^No API key /)]);
      expect(error.message).not.toContain(other.slice(0, 13) || 'undefined');
    }
    const shared = `pets_${id.padStart(7, 'z')}`;
    const twice = `INSERT INTO api_key (client_id, prefix, hash, scopes) SELECT min(id), $2, $1, '{}' FROM client`;
    for (const one of [createApiKey('pets_'), createApiKey('pets_')]) await app.sql(twice, [hashApiKey(one), shared]);
    await expect(keys.find(shared)).rejects.toThrow(`'${shared}' means 2 API keys; name one by its id`);
  });

  test('a revoked, expired or already rotated key cannot be rotated', async () => {
    const { key } = await keys.create({ client: 'rotating' });
    const { key: successor } = await keys.rotate(String(key.id));
    const refusal = 'is revoked, expired or already replaced';
    await expect(keys.rotate(String(key.id))).rejects.toThrow(refusal);
    await keys.revoke(String(successor.id));
    await expect(keys.rotate(String(successor.id))).rejects.toThrow(refusal);
    const { key: short } = await keys.create({ client: 'rotating', expiresAt: new Date(Date.now() + HOUR) });
    app.clock.travelTo(Date.now() + HOUR);
    await expect(keys.rotate(String(short.id))).rejects.toThrow(refusal);
  });

  test('a rotated key gets the lifetime of its predecessor, whose expiry the overlap does not postpone', async () => {
    app.clock.travelTo(Date.now());
    const { key } = await keys.create({ client: 'lasting', expiresAt: new Date(app.clock.now() + HOUR) });
    const { key: successor, predecessor } = await keys.rotate(String(key.id), 24 * HOUR);
    expect(predecessor.expiresAt).toEqual(key.expiresAt);
    expect((successor.expiresAt as Date).getTime() - successor.createdAt.getTime()).toBe(HOUR);
  });

  test('exactly one of two simultaneous rotations succeeds', async () => {
    const { key } = await keys.create({ client: 'twice' });
    const outcomes = await Promise.allSettled([keys.rotate(String(key.id)), keys.rotate(String(key.id))]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await keys.list({ client: 'twice' })).toHaveLength(2);
  });
});

test('closing a tested application fails if its log contains a secret', async () => {
  const BOOTSTRAP_API_KEY = 'a-key-of-our-own-making';
  for (const secret of [createApiKey('pets_'), BOOTSTRAP_API_KEY]) {
    const app = await createTestApp({ settings: { BOOTSTRAP_API_KEY } });
    app.log.logger.info({ header: `Bearer ${secret}` }, 'careless');
    const failure: unknown = await app.close().catch((error: unknown) => error);
    expect(String(failure)).toContain('The log holds a secret, in a line with the members');
    expect(String(failure)).not.toContain(secret);
  }
});

describeOnPostgresql('two instances', () => {
  let database: TestDatabase;
  let one: TestApp;
  let two: TestApp;
  let both: TestApp[];
  let keys: ApiKeysService;
  beforeAll(async () => {
    database = await createTestDatabase();
    one = await createTestApp({ database });
    two = await createTestApp({ database });
    both = [one, two];
    keys = one.nest.get(ApiKeysService);
  });
  afterAll(async () => {
    await one.close();
    await two.close();
    await database.drop();
  });
  afterEach(() => both.forEach(({ clock }) => clock.comeBack()));

  test('after a rotation both keys work until the end of the overlap; then the old one gets expired_api_key', async () => {
    const { key, secret: old } = await keys.create({ client: 'acme-mobile' });
    expect(await statuses(both, old)).toEqual([200, 200]);
    const { secret: successor, predecessor } = await keys.rotate(key.prefix, 24 * HOUR);
    expect(await statuses(both, old)).toEqual([200, 200]);
    expect(await statuses(both, successor)).toEqual([200, 200]);
    const end = (predecessor.expiresAt as Date).getTime();
    // On no instance may the old key be valid after the overlap.
    both.forEach(({ clock }) => clock.travelTo(end - 1_000));
    expect(await statuses(both, old)).toEqual([200, 200]);
    both.forEach(({ clock }) => clock.travelTo(end + 1_000));
    for (const app of both) {
      expect((await call(app, old)).json).toMatchObject({ code: 'expired_api_key', status: 401 });
    }
    expect(await statuses(both, successor)).toEqual([200, 200]);
  });

  test('a revocation and other scopes, also made by SQL, take effect in every instance within a second', async () => {
    const { key, secret } = await keys.create({ client: 'revoked' });
    const { key: narrowed, secret: narrow } = await keys.create({ client: 'narrowed' });
    const now = Date.now();
    both.forEach(({ clock }) => clock.travelTo(now));
    expect([await statuses(both, secret), await statuses(both, narrow)]).toEqual([
      [200, 200],
      [200, 200],
    ]);
    await keys.revoke(String(key.id), 'leaked');
    await one.sql(`UPDATE api_key SET scopes = '{}' WHERE id = $1`, [narrowed.id]);
    both.forEach(({ clock }) => clock.travelTo(now + KEY_TIME_TO_LIVE_MS));
    expect([await statuses(both, secret), await statuses(both, narrow)]).toEqual([
      [401, 401],
      [403, 403],
    ]);
    expect((await call(two, secret)).json).toMatchObject({ code: 'revoked_api_key' });
  });
});
