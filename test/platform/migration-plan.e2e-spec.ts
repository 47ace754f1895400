import pg from 'pg';
import type { DataSource } from 'typeorm';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { migrate } from '../../src/platform/database/schema/migrate.js';
import type { Migration } from '../../src/platform/database/schema/migration-history.js';
import { type PlannedMigration, planMigrations } from '../../src/platform/database/schema/plan/migration-plan.js';
import { createEmptyTestDatabase, createTestDatabase, engine, type TestDatabase } from '../support/database.js';

/*
 * The output of `migrate --plan`: the pending migrations, their SQL, and the locks that the SQL takes.
 */

let database: TestDatabase;
let dataSource: DataSource;

beforeEach(async () => {
  database = await createTestDatabase();
  dataSource = await openDatabase(readConfig(database.ownerSettings));
});
afterEach(async () => {
  await dataSource.destroy();
  await database.drop();
});

/** Adds pending migrations that run these statements. */
function push(...migrations: (Partial<Migration> & { name: string; statements?: string[] })[]): void {
  for (const { statements = [], ...members } of migrations) {
    const migration: Migration = {
      backwardCompatible: true,
      up: async (queryRunner) => {
        for (const statement of statements) await queryRunner.query(statement);
      },
      down: () => Promise.resolve(),
      ...members,
    };
    dataSource.migrations.push(migration);
  }
}

const sqlOf = ({ statements }: PlannedMigration): string[] => statements.map(({ sql }) => sql);

test('the plan shows each statement with its locks on existing tables, and changes nothing', async () => {
  push(
    {
      name: 'AddNote4102444800000',
      statements: ['CREATE TABLE new_table ()', 'ALTER TABLE pet\n        ADD note text,\n          ADD size int'],
    },
    { name: 'DropUsage4102444800001', backwardCompatible: false, statements: ['DROP TABLE key_usage'] },
    {
      name: 'FillNote4102444800002',
      up: async (queryRunner) => {
        await queryRunner.query('CREATE INDEX ix_test ON pet (note)');
        await queryRunner.query('UPDATE client SET name = $1 WHERE name = $2', ['new', 'old']);
      },
    },
  );
  const plan = await planMigrations(dataSource);
  const lock = (table: string, mode: string, blocks: string): unknown => ({ table, mode, blocks });
  expect(plan).toEqual([
    {
      name: 'AddNote4102444800000',
      backwardCompatible: true,
      inTransaction: true,
      failure: undefined,
      statements: [
        { sql: 'CREATE TABLE new_table ()', parameters: [], locks: [] },
        {
          sql: 'ALTER TABLE pet\nADD note text,\n  ADD size int',
          parameters: [],
          locks: [lock('pet', 'ACCESS EXCLUSIVE', 'reads and writes')],
        },
      ],
    },
    {
      name: 'DropUsage4102444800001',
      backwardCompatible: false,
      inTransaction: true,
      failure: undefined,
      statements: [
        {
          sql: 'DROP TABLE key_usage',
          parameters: [],
          // The lock is needed for the foreign key.
          locks: [
            lock('api_key', 'ACCESS EXCLUSIVE', 'reads and writes'),
            lock('key_usage', 'ACCESS EXCLUSIVE', 'reads and writes'),
          ],
        },
      ],
    },
    {
      name: 'FillNote4102444800002',
      backwardCompatible: true,
      inTransaction: true,
      failure: undefined,
      statements: [
        {
          sql: 'CREATE INDEX ix_test ON pet (note)',
          parameters: [],
          locks: [lock('pet', 'SHARE', 'writes')],
        },
        {
          sql: 'UPDATE client SET name = $1 WHERE name = $2',
          parameters: ['new', 'old'],
          locks: [lock('client', 'ROW EXCLUSIVE', 'nothing')],
        },
      ],
    },
  ]);
  expect(await planMigrations(dataSource)).toEqual(plan);
  expect(await dataSource.query(`SELECT to_regclass('new_table') AS made, to_regclass('key_usage') AS kept`)).toEqual([
    { made: null, kept: 'key_usage' },
  ]);
  expect(await migrate(dataSource)).toEqual(plan.map(({ name }) => name));
  expect(await planMigrations(dataSource)).toEqual([]);
});

test('a migration without a transaction is not tried: its changes are only recorded, and its reads run', async () => {
  push({
    name: 'IndexName4102444800000',
    transaction: false,
    up: async (queryRunner) => {
      await queryRunner.query('CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_test ON pet (name)');
      const [{ one }] = (await queryRunner.query('SELECT 1 AS one')) as [{ one: number }];
      await queryRunner.startTransaction();
      await queryRunner.query(`DELETE FROM pet WHERE id < ${one}`);
      await queryRunner.commitTransaction();
    },
  });
  const [planned] = await planMigrations(dataSource);
  expect([planned?.inTransaction, planned?.failure]).toEqual([false, undefined]);
  expect(sqlOf(planned as PlannedMigration)).toEqual([
    'CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_test ON pet (name)',
    'SELECT 1 AS one',
    'DELETE FROM pet WHERE id < 1',
  ]);
  expect(planned?.statements.map(({ locks }) => locks)).toEqual([undefined, [], undefined]);
  expect(await dataSource.query(`SELECT to_regclass('ix_test') AS made`)).toEqual([{ made: null }]);
});

test('the plan says why a migration would fail, and tries the next ones without it', async () => {
  push(
    { name: 'Broken4102444800000', statements: ['CREATE TABLE half_made ()', 'SELECT 1 / 0'] },
    { name: 'Endless4102444800001', transaction: false, up: endless },
    { name: 'Works4102444800002', statements: ['CREATE TABLE half_made ()'] },
  );
  const plan = await planMigrations(dataSource);
  expect(plan.map(({ failure }) => failure)).toEqual([
    'division by zero',
    'It has more than 1000 statements.',
    undefined,
  ]);
  expect(plan.map((planned) => sqlOf(planned).length)).toEqual([2, 1000, 1]);
});

async function endless(queryRunner: { query(text: string): Promise<unknown> }): Promise<void> {
  for (;;) await queryRunner.query('DELETE FROM pet');
}

test('the plan of an empty database lists every migration, and applies none', async () => {
  const empty = await createEmptyTestDatabase();
  const opened = await openDatabase(readConfig(empty.ownerSettings));
  const plan = await planMigrations(opened);
  expect(plan.map(({ name }) => name)).toEqual(opened.migrations.map(({ constructor }) => constructor.name));
  expect(plan.flatMap(({ failure }) => failure ?? [])).toEqual([]);
  expect(sqlOf(plan[0] as PlannedMigration)[1]).toMatch(/^CREATE TABLE pet \(\n {2}id bigint /);
  expect(await opened.query(`SELECT to_regclass('pet') AS pet, to_regclass('schema_migration') AS history`)).toEqual([
    { pet: null, history: null },
  ]);
  await opened.destroy();
  await empty.drop();
});

if (engine === 'postgresql') {
  test('the whole trial takes at most 5 s', async () => {
    push(
      { name: 'Slow4102444800000', statements: ['SELECT pg_sleep(3)', 'SELECT pg_sleep(60)'] },
      { name: 'Later4102444800001', statements: ['SELECT pg_sleep(0)'] },
    );
    const startedAt = performance.now();
    expect((await planMigrations(dataSource)).map(({ failure }) => failure)).toEqual([
      'canceling statement due to statement timeout',
      'The trial takes longer than 5 s.',
    ]);
    expect(performance.now() - startedAt).toBeLessThan(8_000);
  });

  test('the trial gives up a lock that it does not get within 2 s', async () => {
    const backup = new pg.Client({ connectionString: database.ownerSettings.DATABASE_URL });
    await backup.connect();
    await backup.query('BEGIN');
    await backup.query('SELECT count(*) FROM pet');
    push({ name: 'AddNote4102444800000', statements: ['ALTER TABLE pet ADD note text'] });
    const [planned] = await planMigrations(dataSource);
    expect(planned).toMatchObject({
      failure: 'canceling statement due to lock timeout',
      statements: [{ sql: 'ALTER TABLE pet ADD note text', locks: undefined }],
    });
    await backup.end();
  });
}
