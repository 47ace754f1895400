import { DataSource } from 'typeorm';
import { ApiKeysService } from '#access';
import { UNAVAILABLE } from '#errors';
import { Database, type Transaction } from '#postgres';
import { createApiKey } from '../../libs/access/src/api-key-format.js';
import { KEY_TIME_TO_LIVE_MS } from '../../libs/access/src/api-key.verifier.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase } from '../support/database.js';
import { administer } from '../support/postgresql-database.js';
import { handedOver } from '../support/engines.js';
import { until } from '../support/until.js';

/* The database becomes unreachable and returns. Not on the embedded engine, which is part of the process. */

const METRICS_TOKEN = 'the-token-of-prometheus-in-an-outage';

let app: TestApp;
let name: string;
beforeAll(async () => {
  const database = await createTestDatabase();
  app = await createTestApp({ database, settings: { METRICS_TOKEN }, limits: { acquireTimeoutMs: 1_000 } });
  name = new URL(app.database.settings['DATABASE_URL'] ?? '').pathname.slice(1);
});
afterAll(async () => {
  await allowConnections(true);
  await app.close();
  await app.database.drop();
});

async function allowConnections(allowed: boolean): Promise<void> {
  const server = handedOver('serverUrl');
  await administer(server, `ALTER DATABASE ${name} ALLOW_CONNECTIONS ${allowed}`);
  if (!allowed) {
    await administer(server, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  }
}

test('503 unavailable with Retry-After while the database is unreachable; liveness stays 200; requests succeed when it returns', async () => {
  const created = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  expect(created.status).toBe(201);
  await allowConnections(false);

  const calls = [
    app.client.get('/v1/pets'),
    app.client.get(`/v1/pets/${created.json.id}`),
    app.client.post('/v1/pets', { name: 'Max', categoryId: 7 }),
    ...Array.from({ length: 20 }, () => app.client.get('/v1/pets')),
  ];
  for (const answer of await Promise.all(calls)) {
    expect(answer.json).toEqual({
      code: 'unavailable',
      message: 'The database is not available. Try again.',
      status: 503,
    });
    expect(answer.headers).toMatchObject({ 'retry-after': '1', 'cache-control': 'no-store' });
  }
  expect(new Set(app.log.requests.filter(({ status }) => status === 503).map(({ cause }) => cause))).toEqual(
    new Set(['database_away']),
  );
  expect((await app.client.get('/health/live', { apiKey: null })).status).toBe(200);
  // Readiness stays 200, so that a proxy passes the responses above on to clients.
  const becomes = (readiness: object): Promise<boolean> =>
    until(async () => {
      const { status, text } = await app.client.get('/health/ready', { apiKey: null });
      expect(status).toBe(200);
      return text === JSON.stringify(readiness);
    });
  await becomes({ status: 'ok', database: 'unreachable' });
  // The cause is logged for the operator, at most once a second.
  const warnings = app.log.lines.filter(({ level, msg }) => level === 40 && msg.startsWith('Returned 503: '));
  expect(warnings.length).toBeGreaterThanOrEqual(1);
  expect(warnings.length).toBeLessThan(calls.length / 2);

  await allowConnections(true);
  await until(async () => (await app.client.get(`/v1/pets/${created.json.id}`)).text === created.text);
  await becomes({ status: 'ok' });
});

test('in an outage METRICS_TOKEN opens the metrics, and every API key gets 503 after a second; none gets 401', async () => {
  const { secret } = await app.nest.get(ApiKeysService).create({ client: 'prometheus', scopes: ['metrics:read'] });
  const statusOf = async (apiKey: string): Promise<number> => (await app.client.get('/metrics', { apiKey })).status;
  expect(await statusOf(secret)).toBe(200);
  await allowConnections(false);
  app.clock.travelTo(Date.now() + KEY_TIME_TO_LIVE_MS);
  const scrapes = [secret, createApiKey('pets_'), app.apiKey].map(statusOf);
  expect(await Promise.all(scrapes)).toEqual([503, 503, 503]);
  const byToken = await app.client.get('/metrics', { apiKey: METRICS_TOKEN });
  expect([byToken.status, byToken.text]).toEqual([
    200,
    expect.stringMatching(/^petstore_http_unavailable_total\{operation="listPets",cause="database_away"\} [1-9]/m),
  ]);
  await allowConnections(true);
  app.clock.comeBack();
  expect(await statusOf(secret)).toBe(200);
});

test('503, not took_too_long, while the look-up of a key waits for a lock', async () => {
  const slow = await createTestApp({ settings: { STATEMENT_TIMEOUT_MS: '300' } });
  const { secret } = await slow.nest.get(ApiKeysService).create({ client: 'locked-out' });
  const locked = await slow.nest.get(Database).transaction(async ({ manager }) => {
    await manager.query('LOCK TABLE client');
    return slow.client.get('/v1/pets', { apiKey: secret, expects500: true });
  });
  expect(locked).toMatchObject({ status: 503, json: { code: 'unavailable' }, headers: { 'retry-after': '1' } });
  expect(slow.log.requests.at(-1)).toMatchObject({ status: 503, cause: 'database_slow' });
  expect((await slow.client.get('/v1/pets', { apiKey: secret })).status).toBe(200);
  await slow.close();
});

describe('a pool of one connection', () => {
  const NOT_DONE = 'The database is not available. Try again.';
  const UNKNOWN = expect.stringMatching(
    /^The database did not confirm the change in time; it may have been made\./,
  ) as string;
  const visit = { name: '', text: `INSERT INTO client (name) VALUES ('Rex')` };
  let one: TestApp;
  let database: Database;
  beforeAll(async () => {
    one = await createTestApp({ settings: { DATABASE_POOL_SIZE: '1', STATEMENT_TIMEOUT_MS: '200' } });
    database = one.nest.get(Database);
  });
  afterAll(() => one.close());

  /** Ends the connection of a transaction from another connection. */
  async function breakConnection(transaction: Transaction): Promise<void> {
    const [[pid] = [0]] = await transaction.run<[number]>({ name: '', text: 'SELECT pg_backend_pid()' }, []);
    await administer(handedOver('serverUrl'), `SELECT pg_terminate_backend(${pid}, 5000)`);
  }

  test('a request waits 5 s for a connection, wherever it waits', async () => {
    await one.client.get('/v1/pets');
    let waits: readonly number[] = [];
    await database.transaction(async () => {
      const requests = [
        () => one.client.get('/v1/pets'),
        () => one.client.get('/v1/pets/1'),
        () => one.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }),
        () => one.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { headers: { 'idempotency-key': 'waits' } }),
      ];
      waits = await Promise.all(
        requests.map(async (send) => {
          const from = performance.now();
          expect((await send()).status).toBe(503);
          return performance.now() - from;
        }),
      );
    });
    for (const wait of waits) expect(Math.round(wait / 1_000)).toBe(5);
  });

  test('a connection that has not responded in time is not used again', async () => {
    const late = database.transaction(async (transaction) => {
      await transaction.run({ name: '', text: 'SET LOCAL statement_timeout = 0' }, []);
      await transaction.run({ name: '', text: 'SELECT pg_sleep(120)' }, []);
    });
    await expect(late).rejects.toMatchObject({ definition: UNAVAILABLE, message: NOT_DONE });
    // It has waited neither for the statement nor for a ROLLBACK behind it.
    const asleep = `pg_stat_activity WHERE query = 'SELECT pg_sleep(120)' AND state = 'active'`;
    expect(await database.write({ name: '', text: `SELECT pg_terminate_backend(pid) FROM ${asleep}` }, [])).toEqual([
      [true],
    ]);
  });

  test('a query runner takes no connection after its release', async () => {
    const unused = one.nest.get(DataSource).createQueryRunner();
    await unused.release();
    await expect(unused.query('SELECT 1')).rejects.toThrow('released');
    const waiting = one.nest.get(DataSource).createQueryRunner();
    const query = waiting.query('SELECT 1');
    await waiting.release();
    await expect(query).rejects.toThrow('released');
    expect(await database.write({ name: '', text: 'SELECT 1' }, [])).toEqual([[1]]);
  });

  test.each([0, 1])(
    'a transaction that breaks %i statements before its COMMIT is reported as not done',
    async (later) => {
      const broken = database.transaction(async (transaction) => {
        await transaction.run(visit, []);
        await breakConnection(transaction);
        if (later > 0) await transaction.run(visit, []);
      });
      await expect(broken).rejects.toMatchObject({ definition: UNAVAILABLE, message: NOT_DONE });
    },
  );

  test('a transaction that breaks at its COMMIT is reported as of unknown outcome', async () => {
    await one.sql(`CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`);
    await one.sql(`CREATE CONSTRAINT TRIGGER break AFTER INSERT ON client DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION break()`);
    const broken = database.transaction((transaction) => transaction.run(visit, []));
    await expect(broken).rejects.toMatchObject({ definition: UNAVAILABLE, message: UNKNOWN });
    await one.sql('DROP FUNCTION break() CASCADE');
    expect(await one.sql(`SELECT FROM client WHERE name = 'Rex'`)).toEqual([]);
  });

  test('a connection on which a statement of TypeORM has failed is not used again', async () => {
    const dataSource = one.nest.get(DataSource);
    const pid = (): Promise<unknown> => dataSource.query('SELECT pg_backend_pid()');
    const before = await pid();
    // The code with which PostgreSQL closes a connection. Here it stays open, so only the pool can close it.
    const failing = dataSource.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P01'; END $$`);
    await expect(failing).rejects.toMatchObject({ definition: UNAVAILABLE });
    expect(await pid()).not.toEqual(before);
  });

  test('503 through TypeORM also says whether a change may have been made; other errors stay those of TypeORM', async () => {
    const dataSource = one.nest.get(DataSource);
    const end = 'pg_terminate_backend(pg_backend_pid())';
    const read = dataSource.createQueryBuilder().select(end).from('client', 'client').where('1 = 1');
    await one.sql(`INSERT INTO client (name) VALUES ('Max') ON CONFLICT DO NOTHING`);
    await expect(read.getRawMany()).rejects.toMatchObject({ definition: UNAVAILABLE, message: NOT_DONE });
    for (const change of [
      `UPDATE client SET name = 'Max' WHERE ${end}`,
      `SELECT ${end}`,
      `WITH a AS (SELECT ${end}) TABLE a`,
    ])
      await expect(dataSource.query(change)).rejects.toMatchObject({ definition: UNAVAILABLE, message: UNKNOWN });
    await expect(dataSource.query('SELECT nonsense')).rejects.toMatchObject({ name: 'QueryFailedError' });
    await expect(dataSource.query('SELECT pg_sleep(3)')).rejects.toMatchObject({
      name: 'QueryFailedError',
      code: '57014',
    });
    expect(await database.write({ name: '', text: 'SELECT 1' }, [])).toEqual([[1]]);
  });
});
