import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { UNAVAILABLE } from '#errors';
import { Database } from '#postgres';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { executePreparedQuery } from '../../libs/postgres/src/prepared-query.internals.js';
import { type Execute, executeQuery } from '../../libs/postgres/src/statements.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { engine, testOnce } from '../support/database.js';
import { until } from '../support/until.js';

/* How statements use the connections of the pool, in the application that main.ts starts. */

let app: TestApp;
let database: Database;
let pool: Pool;
beforeAll(async () => {
  app = await createTestApp({ settings: { DATABASE_POOL_SIZE: '3', STATEMENT_TIMEOUT_MS: '1000' } });
  database = app.nest.get(Database);
  pool = (app.nest.get(DataSource).driver as unknown as { master: Pool }).master;
});
afterAll(() => app.close());

/** The connections on which `work` runs its statements, or those that the pool removes meanwhile. */
async function clientsOf(work: () => Promise<unknown>, event: 'acquire' | 'remove' = 'acquire'): Promise<Set<unknown>> {
  const found = new Set<unknown>();
  const note = (client: unknown): unknown => found.add(client);
  pool.on(event as 'acquire', note);
  await work().finally(() => pool.off(event, note));
  return found;
}

if (engine === 'postgresql') {
  test('connections are replaced at their largest age, and no statement fails', async () => {
    const aging = await createTestApp({ limits: { databaseConnectionMaxAgeMs: 500 } });
    const pids = new Set<unknown>();
    const work = until(async () => {
      const [row] = await aging.nest.get(Database).write({ name: '', text: 'SELECT pg_backend_pid()' }, []);
      return pids.add(row?.[0]).size >= 3;
    });
    await work.finally(() => aging.close());
  });
}

test('a statement that PostgreSQL refuses is reported unchanged and closes no connection, and the next one with that name succeeds', async () => {
  let used = new Set<unknown>();
  const work = async (): Promise<void> => {
    const statement = { name: 'division', text: 'SELECT 1 / $1::int' };
    await expect(database.write(statement, [0])).rejects.toThrow('division by zero');
    expect(await database.write(statement, [1])).toEqual([[1]]);
    // The last two have codes that stale preparations have, too.
    for (const [code, text] of Object.entries({
      '42601': 'SELEC',
      '42883': 'SELECT no_such_function(1)',
      '0A000': 'SELECT DISTINCT id FROM pet FOR UPDATE',
    })) {
      const wrong = { name: `wrong ${code}`, text };
      await expect(database.write(wrong, [])).rejects.toMatchObject({ code });
      await expect(database.write(wrong, [])).rejects.toMatchObject({ code });
    }
  };
  const removed = await clientsOf(async () => (used = await clientsOf(work)), 'remove');
  expect(used.size).toBeGreaterThan(0);
  expect([...used].filter((client) => removed.has(client))).toEqual([]);
});

test('the query class of the service returns the same rows and errors as that of pg', async () => {
  const cases: [name: string, text: string, values: unknown[]][] = [
    ['', 'SELECT 1', []],
    ['equal_none', 'SELECT 1 WHERE false', []],
    ['equal_columns', 'SELECT', []],
    ['equal_empty', '', []],
    [
      'equal_kinds',
      `SELECT $1::bigint, 2::int, 2.50::numeric, 0.1::float8, true, NULL::int, 'x'::varchar, 'sold'::pet_status,
        '{"a":1}'::jsonb, '{1,2}'::bigint[], '{a}'::text[], $2::bytea, $3::timestamptz, now()::date - now()::date`,
      [2n ** 63n - 1n, Buffer.from([0, 255]), new Date(0)],
    ],
    ['equal_rows', 'SELECT n, n::bigint FROM generate_series(1, 1000) n', []],
    ['equal_changes', `UPDATE pet SET name = name WHERE id = $1 RETURNING id`, [0]],
    ['equal_error', 'SELECT 1 / $1::int', [0]],
    ['equal_error_without_columns', 'DELETE FROM pet WHERE 1 / $1::int = 0', [0]],
    ['equal_late_error', 'SELECT 1 / (3 - n) FROM generate_series(1, 5) n', []],
    ['equal_syntax', 'SELEC', []],
    ['equal_input', 'SELECT $1::int', ['no number']],
    ['equal_missing', 'SELECT $1::int', []],
    ['equal_unwritable', 'SELECT $1::jsonb', [{ toJSON: () => BigInt(1) }]],
  ];
  const outcomes = async (execute: Execute): Promise<unknown[]> => {
    const client = await pool.connect();
    const outcomes: unknown[] = [];
    try {
      // Twice: the second execution finds the statement prepared.
      for (const [name, text, values] of [...cases, ...cases]) {
        const failure = ({ code, message }: Error & { code?: string }): unknown => [code, message];
        outcomes.push(await execute(client, { name, text }, values).catch(failure));
      }
      return outcomes;
    } finally {
      client.release(true);
    }
  };
  const expected = await outcomes(executeQuery);
  expect(await outcomes(executePreparedQuery)).toEqual(expected);
  expect((expected[4] as unknown[][])[0]?.slice(0, 3)).toEqual(['9223372036854775807', 2, '2.50']);
});

test('code inside a transaction that asks for a second connection: on the embedded engine it fails at once', async () => {
  const dataSource = app.nest.get(DataSource);
  const pets = dataSource.getRepository(PetEntity);
  const transactions = [
    (work: () => Promise<unknown>) => database.transaction(work),
    (work: () => Promise<unknown>) => dataSource.transaction('SERIALIZABLE', work),
  ];
  // `Database` is refused on either engine: see `transactions`.
  for (const outside of [() => pets.count(), () => dataSource.transaction(() => Promise.resolve(0))])
    for (const transaction of transactions) {
      // The second attempt must fail, too.
      const outcome = transaction(() => outside().catch(() => outside()));
      await (engine === 'embedded' ? expect(outcome).rejects.toThrow(/Use the transaction: in\(manager\)/) : outcome);
    }
});

test('code beside a transaction, or left behind by one, finds connections', async () => {
  const pets = app.nest.get(DataSource).getRepository(PetEntity);
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  let leftBehind: Promise<unknown> | undefined;
  const transaction = database.transaction(async ({ manager }) => {
    const countByOwn = (): Promise<unknown> => pets.manager.transaction((own) => own.count(PetEntity));
    leftBehind = ended.then(() => Promise.all([pets.count(), pets.count(), countByOwn()]));
    await manager.transaction((nested) => nested.count(PetEntity));
  });
  await Promise.all([transaction, pets.count()]);
  end();
  await leftBehind;
});

test('a transaction whose work goes on after the error of a statement is not taken for committed', async () => {
  await app.sql('CREATE TABLE kept (value int)');
  const outcome = database.transaction(async (transaction) => {
    await transaction.run({ name: '', text: 'INSERT INTO kept VALUES (1)' }, []);
    await transaction.run({ name: '', text: 'SELECT 1 / 0' }, []).catch(() => undefined);
  });
  await expect(outcome).rejects.toThrow('nothing is kept');
  expect(await app.sql('SELECT value FROM kept')).toEqual([]);
});

test('a transaction that code has left open is undone, and no other statement runs in it', async () => {
  const runner = app.nest.get(DataSource).createQueryRunner();
  await runner.startTransaction();
  await runner.query(`INSERT INTO client (name) VALUES ('left open')`);
  await runner.release();
  const find = { name: '', text: `SELECT name FROM client WHERE name = 'left open'` };
  const found = await Promise.all(Array.from({ length: 12 }, () => database.write(find, [])));
  expect(found.flat()).toEqual([]);
});

describe('statements that a connection has prepared, and cannot use any more', () => {
  const MADE_OF = { name: 'stale', text: 'SELECT value FROM stale' };
  beforeAll(async () => {
    await app.sql('CREATE TABLE stale (value int)');
    await app.sql('INSERT INTO stale VALUES (7)');
  });

  /** Lets every connection of the pool prepare the statement. */
  async function prepare(): Promise<void> {
    await Promise.all(Array.from({ length: 12 }, () => database.read(MADE_OF, [])));
  }

  test.each<[string, () => Promise<unknown>, unknown]>([
    ['the type of a column changes', () => app.sql('ALTER TABLE stale ALTER value TYPE bigint'), '7'],
    ['somebody drops what is prepared', () => database.write({ name: '', text: 'DEALLOCATE ALL' }, []), '7'],
  ])('are prepared again under load, without an error: %s', async (_, change, expected) => {
    await prepare();
    let isOver = false;
    const client = async (): Promise<unknown[]> => {
      const found: unknown[] = [];
      for (let isLast = false; !isLast;) {
        isLast = isOver;
        found.push((await database.write(MADE_OF, []))[0]?.[0]);
        // Lets other work run: the embedded engine answers within one turn of the event loop.
        await nextTurn();
      }
      return found;
    };
    const clients = Promise.all(Array.from({ length: 6 }, client));
    for (let round = 0; round < 20; round++) await change();
    isOver = true;
    for (const found of await clients) {
      expect(found.at(-1)).toBe(expected);
      expect(found.filter((value) => Number(value) !== 7)).toEqual([]);
    }
  });

  test('are not used in a transaction, which loses nothing', async () => {
    const twice = (): Promise<unknown[][]> =>
      database.transaction(async (transaction) => {
        await transaction.run({ name: 'stale_insert', text: 'INSERT INTO stale VALUES ($1)' }, [7]);
        return transaction.run(MADE_OF, []);
      });
    for (const type of ['bigint', 'text', 'int']) {
      await prepare();
      await Promise.all(Array.from({ length: 12 }, twice));
      await app.sql(`ALTER TABLE stale ALTER value TYPE ${type} USING value::${type}`);
      for (let attempt = 0; attempt < 3; attempt++) expect(await twice()).not.toEqual([]);
    }
    expect(await app.sql('SELECT count(*)::int FROM stale')).toEqual([[1 + 3 * 15]]);
  });

  describe('because a column has another type', () => {
    const STATEMENTS: [text: string, values: unknown[]][] = [
      ['SELECT id FROM typed WHERE mood = $1', ['calm']],
      ['INSERT INTO typed (id, mood) VALUES ($1, $2) RETURNING id, mood', [7, 'calm']],
      ['INSERT INTO typed (id, mood) SELECT * FROM unnest($1::int[], $2::mood[]) RETURNING id, mood', [[7], ['calm']]],
    ];
    const four = (index: number): Promise<unknown[][]>[] => {
      const [text, values] = STATEMENTS[index] as (typeof STATEMENTS)[number];
      return Array.from({ length: 4 }, () => database.write({ name: `typed ${index}`, text }, values));
    };
    beforeAll(async () => {
      await app.sql(`CREATE TYPE mood AS ENUM ('calm', 'wild')`);
      await app.sql('CREATE TABLE typed (id int, mood mood)');
    });

    // As one does to remove a value of an enum.
    const REPLACED = `ALTER TYPE mood RENAME TO mood_old; CREATE TYPE mood AS ENUM ('calm');
      ALTER TABLE typed ALTER mood TYPE mood USING mood::text::mood; DROP TYPE mood_old`;
    test.each([
      ['an enum that replaces a dropped one', REPLACED],
      ['text', 'ALTER TABLE typed ALTER mood TYPE text'],
    ])('are prepared again, for reads and INSERTs: %s', async (_, changes) => {
      const all = (): Promise<unknown[][]> => Promise.all([0, 1, 2].flatMap(four));
      for (let round = 0; round < 2; round++) await all();
      const stale = await clientsOf(all);
      for (const change of changes.split(';')) await app.sql(change);
      const [[before]] = (await app.sql('SELECT count(*)::int FROM typed')) as [[number]];
      for (let round = 0; round < 3; round++) {
        for (const rows of (await all()).slice(4)) expect(rows).toEqual([[7, 'calm']]);
      }
      // On a connection that is kept, each execution would fail once more.
      const used = await clientsOf(() => Promise.all([...four(0), ...four(0)]));
      expect([...used].filter((client) => stale.has(client))).toEqual([]);
      expect(await app.sql('SELECT count(*)::int FROM typed')).toEqual([[before + 3 * 8]]);
    });
  });
});

// Last: for half a second, changes are refused because of the statements that it leaves unanswered.
testOnce('timeoutMs of a transaction replaces the limit of its statements, and no others', async () => {
  const late = { definition: UNAVAILABLE };
  const cancelled = { name: 'QueryFailedError', code: '57014' };
  const sleepFor = (seconds: number, ...options: [{ timeoutMs: number }?]): Promise<unknown> =>
    database.transaction(({ manager }) => manager.query('SELECT pg_sleep($1)', [seconds]), ...options);
  await Promise.all([
    sleepFor(2.7, { timeoutMs: 5_000 }),
    expect(sleepFor(2.7)).rejects.toMatchObject(cancelled),
    expect(sleepFor(0.5, { timeoutMs: 100 })).rejects.toMatchObject(cancelled),
  ]);
  // Without PostgreSQL's limit, ours is left: on the connection of the first transaction, too. Nothing waits behind it.
  const sleepUnlimited = (): Promise<unknown> =>
    database.transaction((transaction) =>
      transaction.manager
        .query('SET LOCAL statement_timeout = 0; SELECT pg_sleep(120)')
        .catch(() => transaction.run({ name: '', text: 'SELECT 1' }, [])),
    );
  await Promise.all([1, 2, 3].map(() => expect(sleepUnlimited()).rejects.toMatchObject(late)));
});
