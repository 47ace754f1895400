import { openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import {
  administerTestDatabase,
  createEmptyTestDatabase,
  createTestDatabase,
  type TestDatabase,
  testOnce,
} from '../support/database.js';
import { type Outcome, petstoreCommand } from './support/petstore-command.js';
import { Services } from './support/services.js';

/*
 * Databases that this version did not make: the start and each command say so in one line with the remedy, and
 * change nothing.
 */

import.meta.jest.setTimeout(240_000);

/** The table of migrations, as every version has made it. */
const HISTORY = `CREATE TABLE schema_migration (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, timestamp bigint NOT NULL,
  name varchar NOT NULL UNIQUE, applied_at timestamptz NOT NULL DEFAULT now(), backward_compatible boolean NOT NULL DEFAULT false)`;

const record = (name: string, isCompatible: boolean): string =>
  `INSERT INTO schema_migration (timestamp, name, backward_compatible) VALUES (${name.slice(-13)}, '${name}', ${isCompatible})`;

/** What a version before 1.0.0 has recorded, and some of its tables. */
const BEFORE_1 = [
  HISTORY,
  ...[
    ...[
      'CreatePet1795219200000',
      'CreateApiKey1795219260000',
      'CreateClient1795228920000',
      'CreateKeyUsage1795228980000',
    ],
    ...['CreateIdempotencyKey1795237200000', 'NotifyChangedKeys1795305600000', 'TuneTablesOfManyUpdates1795305660000'],
    'LeaveRoomForUpdatesOfWholePages1795356000000',
  ].map((name) => record(name, name !== 'CreateClient1795228920000')),
  `CREATE TYPE pet_status AS ENUM ('available', 'pending', 'sold')`,
  'CREATE TABLE pet (id bigint PRIMARY KEY, name varchar(255) NOT NULL, category_id bigint NOT NULL, status pet_status)',
  'CREATE TABLE client (id bigint PRIMARY KEY, name text NOT NULL)',
  'CREATE TABLE api_key (id bigint PRIMARY KEY, client_id bigint REFERENCES client, hash bytea NOT NULL)',
];

const OBJECTS = `SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'S')
  UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace ORDER BY 1`;

const services = new Services();
const databases: TestDatabase[] = [];
afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

/** Runs statements as the owner; returns the rows of the last. */
async function run(database: TestDatabase, ...statements: string[]): Promise<unknown> {
  const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
  try {
    let rows: unknown;
    for (const statement of statements) rows = await dataSource.query(statement);
    return rows;
  } finally {
    await dataSource.destroy();
  }
}

async function databaseOf(made: Promise<TestDatabase>, ...statements: string[]): Promise<TestDatabase> {
  const database = await made;
  databases.push(database);
  await run(database, ...statements);
  return database;
}

const petstore = (database: TestDatabase, ...words: string[]): Promise<Outcome> =>
  petstoreCommand(services.home, database.ownerSettings, ...words);

/** Expects that the start and every command about the schema print the line and change nothing. */
async function expectRefusals(database: TestDatabase, line: RegExp): Promise<void> {
  const before = await run(database, OBJECTS);
  for (const migrateOnStart of ['false', 'true']) {
    const settings = { ...database.ownerSettings, MIGRATE_ON_START: migrateOnStart };
    expect(await services.refusal(settings)).toMatch(line);
  }
  for (const words of [
    ['migrate'],
    ['migrate', '--dry-run'],
    ['migrate:status'],
    ['migrate:revert'],
    ['keys', 'list'],
  ]) {
    const { code, stderr } = await petstore(database, ...words);
    expect([words, code, stderr]).toEqual([words, 1, expect.stringMatching(line)]);
    expect(stderr.trimEnd()).not.toContain('\n');
  }
  expect(await run(database, OBJECTS)).toEqual(before);
}

test('the schema of a version before 1.0.0', async () => {
  const database = await databaseOf(createEmptyTestDatabase(), ...BEFORE_1);
  await expectRefusals(
    database,
    new RegExp(
      '^petstore: The database schema is newer than this version and not backward compatible: ' +
        'it has CreateClient1795228920000\\. Start .+ to an empty one\\.\\s*$',
    ),
  );
  const { stdout } = await petstore(database, 'migrate:status');
  expect(stdout).toMatch(/^newer, incompatible .* CreateClient1795228920000 *$/m);
  expect(stdout).toMatch(/^newer, compatible .* CreateKeyUsage1795228980000 *$/m);
});

testOnce('a newer, compatible schema is fine', async () => {
  const database = await databaseOf(createTestDatabase(), record('AddOwner4102444800000', true));
  expect(await petstore(database, 'migrate')).toEqual({ code: 0, stdout: 'The schema is current.\n', stderr: '' });
  expect(await petstore(database, 'migrate:status')).toMatchObject({ code: 0, stderr: '' });
  await services.start({ ...database.settings, MIGRATE_ON_START: 'false' }).origin();
  await administerTestDatabase(database, 'UPDATE schema_migration SET backward_compatible = false');
  expect((await petstore(database, 'migrate', '--dry-run')).stdout).toBe('No migration of this version is pending.\n');
});

testOnce('a migration whose class was renamed after it was applied', async () => {
  const database = await databaseOf(
    createTestDatabase(),
    `UPDATE schema_migration SET name = 'MakePet1795219200000', backward_compatible = false WHERE name = 'CreatePet1795219200000'`,
  );
  await expectRefusals(
    database,
    /^petstore: Migration CreatePet1795219200000 has the time of MakePet1795219200000, which is applied\. If its class was renamed, give it its old name again; otherwise another time\.\s*$/,
  );
});

testOnce("a schema of the owner's name, which the service does not look into", async () => {
  const database = await databaseOf(
    createEmptyTestDatabase(),
    `DO $$BEGIN EXECUTE format('CREATE SCHEMA %I', current_user); END$$`,
  );
  expect((await petstore(database, 'migrate')).code).toBe(0);
  expect(await services.refusal(database.settings)).toMatch(
    / schema is empty\. Run .+ migrate'\. If that finds nothing to do, .* such as "\$user", .* search_path for both roles\.$/,
  );
});

testOnce('a search_path of which no schema exists', async () => {
  const database = await databaseOf(
    createTestDatabase(),
    `DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = nowhere', current_database()); END$$`,
  );
  await expectRefusals(
    database,
    /^petstore: No schema of the search_path exists, .+, by ALTER ROLE … SET search_path TO /,
  );
});

testOnce('another application with tables of other names shares the database', async () => {
  const database = await databaseOf(createEmptyTestDatabase(), 'CREATE TABLE migrations (id serial, name varchar)');
  expect((await petstore(database, 'migrate')).code).toBe(0);
});

testOnce('a role without a right on a table of a feature', async () => {
  const database = await databaseOf(
    createTestDatabase(),
    `DO $$BEGIN EXECUTE format('REVOKE INSERT ON pet FROM %I', regexp_replace(current_user, 'owner$', 'service')); END$$`,
  );
  expect(await petstore({ ...database, ownerSettings: database.settings }, 'migrate:status')).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /^petstore: The role .+ As the owner, run: GRANT INSERT ON pet TO \S+_service\.\n$/,
    ) as string,
  });
});

describe('a database that was restored in part', () => {
  const again = /^petstore: Migration CreatePet1795219200000 failed and was undone: .+ already exists\.\n$/;

  test.each([
    ['without the table of migrations', ['DROP TABLE schema_migration']],
    ['with an empty table of migrations', ['DELETE FROM schema_migration']],
  ])('%s', async (_, statements) => {
    const database = await databaseOf(createTestDatabase(), ...statements);
    const before = await run(database, OBJECTS);
    expect(await petstore(database, 'migrate')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(again) as string,
    });
    expect(await services.refusal({ ...database.ownerSettings, MIGRATE_ON_START: 'true' })).toMatch(
      / already exists\.$/,
    );
    expect(await services.refusal({ ...database.ownerSettings, MIGRATE_ON_START: 'false' })).toMatch(
      / schema is empty\. Run '.+ migrate'\. If /,
    );
    expect(await run(database, OBJECTS)).toEqual(before);
  });

  test('without the tables', async () => {
    const database = await databaseOf(
      createTestDatabase(),
      'DROP TABLE key_usage, api_key, client, pet, idempotency_key',
    );
    const line = await services.refusal({ ...database.ownerSettings, BOOTSTRAP_API_KEY: 'bootstrap-key-of-the-tests' });
    expect(line).toMatch(/^petstore: PostgreSQL refuses: relation ".+" does not exist \(SQLSTATE 42P01\)\./);
  });
});
