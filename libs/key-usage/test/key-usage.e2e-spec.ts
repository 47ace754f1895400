import { ApiKeysService } from '#access';
import { Metrics } from '#ops';
import { DELETE_BEFORE, KeyUsage } from '../src/key-usage.js';
import { Database } from '#postgres';
import { asUnavailable } from '../../postgres/src/connections/connection-errors.js';
import { KeyUsageRetention } from '../src/key-usage.module.js';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import { createTestDatabase, describeOnPostgresql, testOnce } from '../../../test/support/database.js';
import { HOSTILE, setDefaults } from '../../../test/support/hostile-settings.js';
import { partitionTables } from '../../../test/support/partitioned-tables.js';
import { until } from '../../../test/support/until.js';

const { jest } = import.meta;

/** The day at an instance, or one of some days before. */
function dayAt({ clock }: TestApp, before = 0): string {
  return new Date(clock.now() - before * 86_400_000).toISOString().slice(0, 10);
}

/** The stored usage, oldest first. */
function storedUsage(app: TestApp): Promise<unknown[][]> {
  return app.sql(`SELECT client.name, operation, day::text, calls::int, last_call_at, last_user_agent
    FROM key_usage JOIN api_key ON api_key.id = key_id JOIN client ON client.id = client_id
    ORDER BY day, client.name, operation, key_id`);
}

/** The stored numbers of calls, in the same order. */
const storedCalls = async (app: TestApp): Promise<unknown[]> => (await storedUsage(app)).map((row) => row[3]);

function call(app: TestApp, path: string, agent?: string, apiKey = app.apiKey): Promise<unknown> {
  return app.client.get(path, { apiKey, headers: { 'user-agent': agent } });
}

describe('one instance', () => {
  let app: TestApp;
  let usage: KeyUsage;
  beforeEach(async () => {
    app = await createTestApp();
    usage = app.nest.get(KeyUsage);
  });
  afterEach(() => app.close());

  test('calls are summed by key, operation and day, with the last call and its user agent', async () => {
    app.clock.travelTo('2027-03-01T23:59:58Z');
    await call(app, '/v1/pets', 'first/1');
    await call(app, '/v1/pets', 'second/2');
    await call(app, '/v1/pets/1', 'third/3');
    app.clock.travelTo('2027-03-02T00:00:00Z');
    await call(app, '/v1/pets', 'x'.repeat(300));
    await call(app, '/v1/pets?limit=0');
    await usage.write();
    expect((await storedUsage(app)).map((row) => row[5])).toEqual(['third/3', 'second/2', null]);
    await call(app, '/v1/pets', 'x'.repeat(300));
    await Promise.all([usage.write(), usage.write()]);
    const [before, midnight] = [new Date('2027-03-01T23:59:58Z'), new Date('2027-03-02T00:00:00Z')];
    expect(await storedUsage(app)).toEqual([
      ['test-client', 'getPet', '2027-03-01', 1, before, 'third/3'],
      ['test-client', 'listPets', '2027-03-01', 2, before, 'second/2'],
      ['test-client', 'listPets', '2027-03-02', 3, midnight, 'x'.repeat(200)],
    ]);
    expect((await app.nest.get(ApiKeysService).list()).map(({ lastUsedAt }) => lastUsedAt)).toEqual([midnight]);
  });

  test('failed writes are counted in a metric, and their calls are written later', async () => {
    const name = 'petstore_key_usage_write_failures_total';
    const failures = async (): Promise<unknown> =>
      (await app.nest.get(Metrics).registry.getSingleMetric(name)?.get())?.values[0]?.value;
    await usage.write();
    expect(await failures()).toBe(0);
    await app.sql('ALTER TABLE key_usage RENAME TO key_usage_away');
    for (let count = 0; count < 2; count++) {
      expect(await call(app, '/v1/pets')).toMatchObject({ status: 200 });
      await usage.write();
    }
    await app.sql('ALTER TABLE key_usage_away RENAME TO key_usage');
    expect(await failures()).toBe(2);
    expect(app.log.text).toContain('The usage of API keys could not be written and waits: ');
    await usage.write();
    expect(await storedCalls(app)).toEqual([2]);
  });

  test('refused calls of a valid key are counted, calls without a valid key are not', async () => {
    await app.client.post('/v1/pets', '{');
    await app.client.get('/v1/pets', { apiKey: null });
    await app.client.get('/v1/pets', { apiKey: 'unknown-key-unknown-key' });
    const apiKey = await app.createApiKey({ client: 'reader', scopes: ['pets:read'] });
    await app.client.post('/v1/pets', '{', { apiKey });
    await usage.write();
    const counted = (await storedUsage(app)).map(([client, operation, , calls]) => [client, operation, calls].join());
    expect(counted).toEqual(['reader,createPet,1', 'test-client,createPet,1']);
  });

  test('usage is summed over all keys of a client, so a rotation does not split it', async () => {
    const keys = app.nest.get(ApiKeysService);
    const { key, secret } = await keys.create({ client: 'rotating' });
    await call(app, '/v1/pets/1', 'old', secret);
    const { secret: successor } = await keys.rotate(String(key.id));
    app.clock.travelTo(Date.now() + 1_000);
    await call(app, '/v1/pets/1', 'new', successor);
    await usage.write();
    const sum = { client: 'rotating', calls: 2n, lastUserAgent: 'new' };
    expect(await usage.sumByClient('getPet', dayAt(app), 2)).toMatchObject([sum]);
  });

  test.each([
    ['is confirmed', null, 0],
    ['is not: one is reported as missing', asUnavailable(new Error('Connection terminated unexpectedly'), true), 1],
  ])('calls before and during a write are written once when it %s', async (_, failure, missing) => {
    const add = usage.add.bind(usage);
    jest.spyOn(usage, 'add').mockImplementationOnce(async (records) => {
      await call(app, '/v1/pets');
      await add(records);
      if (failure instanceof Error) throw failure;
    });
    await call(app, '/v1/pets');
    await usage.write();
    await usage.write();
    expect([await storedCalls(app), usage.failedWrites, usage.uncountedCalls]).toEqual([[2], missing, missing]);
  });

  test('memory is bounded: calls beyond 50,000 pairs of key and operation are not counted', async () => {
    for (let key = 1n; key <= 50_050n; key++) usage.count(key, 'listPets', undefined);
    expect(usage.uncountedCalls).toBe(50);
    await usage.write();
    // Usage is stored only for keys that exist.
    expect(await storedCalls(app)).toEqual([1]);
  });

  test('usage is written without a trigger', async () => {
    await call(app, '/v1/pets');
    await until(async () => (await storedUsage(app)).length > 0);
    expect(await storedCalls(app)).toEqual([1]);
  });

  describe('usage of the last 400 days', () => {
    let retention: KeyUsageRetention;
    beforeEach(async () => {
      retention = app.nest.get(KeyUsageRetention);
      // Joins the run that began at the start, which finds nothing.
      await retention.remove();
      await app.sql(
        `INSERT INTO key_usage SELECT min(api_key.id), operation, day::date, 1, day, 'old'
          FROM api_key, unnest('{getPet,listPets,gone}'::text[]) operation,
          generate_series($1::date - 999, $1::date, interval '1 day') day GROUP BY operation, day`,
        [dayAt(app)],
      );
    });

    test('older usage is deleted in batches of 1,000 rows, and that of the last days is kept', async () => {
      const deleting = jest.spyOn(usage, 'deleteBefore');
      await retention.remove();
      const kept = 'SELECT operation, count(*)::int, min(day)::text FROM key_usage GROUP BY 1 ORDER BY 1';
      expect(await app.sql(kept)).toEqual(['getPet', 'gone', 'listPets'].map((name) => [name, 400, dayAt(app, 399)]));
      const batches = await Promise.all(deleting.mock.results.map(({ value }) => value as Promise<number>));
      expect(batches).toEqual([1_000, 800, 0]);
    });

    test('a failed deletion is repeated by the next run, and a stop waits for at most one batch', async () => {
      const failing = jest.spyOn(usage, 'deleteBefore').mockRejectedValue(new Error('The database is unreachable.'));
      retention.onApplicationBootstrap();
      await expect(retention.remove()).rejects.toThrow('The database is unreachable.');
      expect(app.log.text).toContain('usage of API keys could not be removed and wait: The database is unreachable.');
      failing.mockRestore();
      const deleting = retention.remove();
      await retention.onModuleDestroy();
      await deleting;
      expect(await app.sql('SELECT count(*)::int FROM key_usage')).toEqual([[2_000]]);
    });
  });
});

test('all counts are written when the service stops, also that of the last request', async () => {
  const database = await createTestDatabase();
  const app = await createTestApp({ database });
  await call(app, '/v1/pets', 'last');
  await app.close();
  const next = await createTestApp({ database });
  const counted = (await storedUsage(next)).map(([client, , , calls, , agent]) => [client, calls, agent]);
  expect(counted).toEqual([['test-client', 1, 'last']]);
  await next.close();
  await database.drop();
});

testOnce('the removal of old days from a partitioned table opens no partition of later days', async () => {
  const database = await createTestDatabase();
  await partitionTables(database);
  const app = await createTestApp({ database });
  await app.sql(
    `INSERT INTO key_usage SELECT min(id), 'getPet', day::date, 1, day, NULL
      FROM api_key, generate_series(current_date - 9, current_date, interval '1 day') day GROUP BY day`,
  );
  const [[day]] = (await app.sql('SELECT (current_date - 1)::text')) as [[string]];
  const removal = DELETE_BEFORE.text.replaceAll('$1', `'${day}'`);
  const plan = (await app.sql(`EXPLAIN ${removal}`)).flat() as string[];
  const opened = plan.flatMap((line) => / on (key_usage_\w+)/.exec(line)?.[1] ?? []);
  expect(new Set(opened)).toEqual(new Set(['key_usage_default']));
  expect(await app.nest.get(KeyUsage).deleteBefore(day)).toBe(8);
  expect(await app.sql('SELECT count(*)::int FROM key_usage')).toEqual([[2]]);
  await app.close();
  await database.drop();
});

describeOnPostgresql('two instances', () => {
  test('usage has the sum of both, and rows are locked in the order of their keys, so that no two writes deadlock', async () => {
    const app = await createTestApp();
    const second = await createTestApp({ database: app.database });
    const [one, two] = [app.nest.get(KeyUsage), second.nest.get(KeyUsage)];
    const keys = app.nest.get(ApiKeysService);
    const [{ key: low }, { key: high }] = [await keys.create({ client: 'low' }), await keys.create({ client: 'high' })];
    // Behind the other one in its table, too: a scan finds them in the opposite order.
    await app.sql('UPDATE api_key SET prefix = prefix WHERE id = $1', [low.id]);
    const count = (usage: KeyUsage): void => [high, low].forEach(({ id }) => usage.count(id, 'getPet', undefined));
    for (const usage of [one, two]) count(usage);
    await Promise.all([one.write(), two.write()]);

    count(one);
    let writing: Promise<void> | undefined;
    const other = second.nest.get(Database).transaction(async (transaction) => {
      const text = 'SELECT FROM key_usage WHERE key_id = $1 FOR UPDATE NOWAIT';
      await transaction.run({ name: '', text }, [high.id]);
      writing = one.write();
      const blocked = `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND datname = current_database()`;
      await until(async () => (await second.sql(blocked)).length > 0);
      await transaction.run({ name: '', text }, [low.id]);
    });
    await expect(other).rejects.toMatchObject({ code: '55P03' });
    await writing;
    expect(await one.sumByClient('getPet', dayAt(app), 2)).toMatchObject([
      { client: 'high', calls: 3n },
      { client: 'low', calls: 3n },
    ]);
    await second.close();
    await app.close();
  });
});

test.each(['German', 'SQL, DMY', 'Postgres, MDY'])(
  'usage has its days and times whatever DateStyle is: %s',
  async (datestyle) => {
    const database = await createTestDatabase();
    await setDefaults(database, { ...HOSTILE, datestyle });
    const app = await createTestApp({ database });
    const keys = app.nest.get(ApiKeysService);
    const { key } = await keys.create({ client: 'a' });
    const now = app.clock.now();
    const usage = app.nest.get(KeyUsage);
    usage.count(key.id, 'getPet', undefined, now);
    await usage.write();
    const sum = { client: 'a', calls: 1n, lastCallAt: new Date(now), lastUserAgent: null };
    expect(await usage.sumByClient('getPet', dayAt(app), 1)).toEqual([sum]);
    expect(await usage.firstDay()).toBe(dayAt(app));
    expect((await keys.find(String(key.id))).lastUsedAt).toEqual(new Date(now));
    await app.close();
    await database.drop();
  },
);
