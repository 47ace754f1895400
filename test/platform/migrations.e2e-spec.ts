import pg from 'pg';
import type { DataSource } from 'typeorm';
import { readConfig } from '../../src/config.js';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { ApiKeyEntity } from '../../src/platform/api-keys/api-key.entity.js';
import { ClientEntity } from '../../src/platform/api-keys/client.entity.js';
import { KeyUsageEntity } from '../../src/platform/key-usage/key-usage.entity.js';
import { IdempotencyKeyEntity } from '../../src/platform/idempotency/idempotency-key.entity.js';
import { openCurrentDatabase, openDatabase } from '../../src/platform/database/data-source.js';
import { dataSourceOptions } from '../../src/platform/database/data-source-options.js';
import { migrate, revertLastMigration } from '../../src/platform/database/schema/migrate.js';
import { type Migration, migrationStatus } from '../../src/platform/database/schema/migration-history.js';
import { assertSchemaIsUsable } from '../../src/platform/database/schema/schema-check.js';
import { StartupError } from '../../src/platform/errors/startup-error.js';
import { createEmptyTestDatabase, createTestDatabase, engine, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
let dataSource: DataSource;

const ENTITIES = [PetEntity, ClientEntity, ApiKeyEntity, KeyUsageEntity, IdempotencyKeyEntity];

beforeEach(async () => {
  database = await createTestDatabase();
  dataSource = await openDatabase(readConfig(database.ownerSettings), ENTITIES);
});

afterEach(async () => {
  if (dataSource.isInitialized) await dataSource.destroy();
  await database.drop();
});

/** Tables and types, beside the one that notes the migrations. */
async function schemaObjects(): Promise<unknown> {
  return dataSource.query(`
    SELECT relname AS name FROM pg_class
    WHERE relnamespace = current_schema::regnamespace AND relname NOT LIKE '%schema_migration%'
    UNION SELECT typname FROM pg_type WHERE typnamespace = current_schema::regnamespace AND typtype = 'e'`);
}

test('every migration can be reverted, until nothing is left, and applied again', async () => {
  const names = (await migrationStatus(dataSource)).map(({ name }) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(await migrate(dataSource)).toEqual([]);

  for (const name of [...names].reverse()) {
    expect(await revertLastMigration(dataSource)).toBe(name);
  }
  expect(await revertLastMigration(dataSource)).toBeUndefined();
  expect(await schemaObjects()).toEqual([]);
  expect((await migrationStatus(dataSource)).every(({ appliedAt }) => appliedAt === undefined)).toBe(true);

  const progress: unknown[] = [];
  expect(await migrate(dataSource, (...step) => progress.push(step))).toEqual(names);
  expect(progress).toEqual(names.map((name, index) => [name, index + 1, names.length]));
  expect((await migrationStatus(dataSource)).every(({ appliedAt }) => appliedAt instanceof Date)).toBe(true);
  await assertSchemaIsUsable(dataSource);
});

test('entities and migrations describe the same schema', async () => {
  const { upQueries, downQueries } = await dataSource.driver.createSchemaBuilder().log();
  expect([...upQueries, ...downQueries]).toEqual([]);
});

test('int64 is exact in entities, at its ends', async () => {
  const pets = dataSource.getRepository(PetEntity);
  for (const categoryId of ['-9223372036854775808', '9223372036854775807', '9007199254740993']) {
    const { id } = await pets.save({ name: 'Rex', categoryId });
    expect(await pets.findOneBy({ id })).toEqual({ id, name: 'Rex', categoryId, status: 'available' });
    expect(await pets.countBy({ categoryId })).toBe(1);
  }
});

/** Reads and checks the schema as a start with these settings does. */
async function start(MIGRATE_ON_START: string): Promise<void> {
  const options = await dataSourceOptions(readConfig({ ...database.ownerSettings, MIGRATE_ON_START }));
  await (await openCurrentDatabase(options)).destroy();
}

test('an outdated schema is refused with the command to run', async () => {
  const last = await revertLastMigration(dataSource);
  const beforeLast = await revertLastMigration(dataSource);
  await migrateTo(beforeLast as string);
  await dataSource.destroy();
  const message = `The database schema is outdated: it lacks ${last}. Run: npm run petstore -- migrate`;
  await expect(start('false')).rejects.toMatchObject({ name: StartupError.name, message });
});

/** Applies the pending migrations up to this one. */
async function migrateTo(name: string): Promise<void> {
  const all = [...dataSource.migrations];
  dataSource.migrations.splice(all.findIndex(({ constructor }) => constructor.name === name) + 1);
  await migrate(dataSource);
  dataSource.migrations.splice(0, all.length, ...all);
}

/** Adds a migration to those of this version. */
function pushMigration(migration: Migration): void {
  dataSource.migrations.push(migration);
}

/** A migration that a version with more than this one has. */
function later(name: string, backwardCompatible: boolean): Migration {
  return {
    name,
    backwardCompatible,
    up: (queryRunner) => queryRunner.query(`CREATE TABLE ${name.toLowerCase()} ()`),
    down: (queryRunner) => queryRunner.query(`DROP TABLE ${name.toLowerCase()}`),
  };
}

/** Applies migrations as a newer version does, which then ends. */
async function migrateAsNewerVersion(...migrations: Migration[]): Promise<void> {
  const count = dataSource.migrations.length;
  dataSource.migrations.push(...migrations);
  expect(await migrate(dataSource)).toEqual(migrations.map(({ name }) => name));
  dataSource.migrations.splice(count);
}

test('a newer schema is accepted if all its unknown migrations are declared backward compatible', async () => {
  await migrateAsNewerVersion(later('AddOwner4102444800000', true), later('AddVet4102444800001', true));
  expect((await migrationStatus(dataSource)).slice(-2)).toEqual(
    ['AddOwner4102444800000', 'AddVet4102444800001'].map((name) => ({
      name,
      appliedAt: expect.any(Date) as Date,
      isKnown: false,
      backwardCompatible: true,
    })),
  );
  await expect(revertLastMigration(dataSource)).rejects.toThrow(
    'Migration AddVet4102444800001 is unknown to this version. Revert it with the version that applied it.',
  );
  await dataSource.destroy();
  for (const migrateOnStart of ['true', 'false']) await start(migrateOnStart);
});

test('a newer schema is refused if one of its unknown migrations is declared incompatible, which is named', async () => {
  await migrateAsNewerVersion(later('AddOwner4102444800000', true), later('DropName4102444800001', false));
  await dataSource.destroy();
  const message =
    'The database schema is newer than this version and not backward compatible: it has DropName4102444800001. ' +
    'Start the version that applied it, or revert with that version: npm run petstore -- migrate:revert';
  for (const migrateOnStart of ['true', 'false']) {
    await expect(start(migrateOnStart)).rejects.toMatchObject({ name: StartupError.name, message });
  }
});

test('a schema that was made before migrations said so: unknown ones are incompatible, and the next ones say so', async () => {
  await dataSource.query('ALTER TABLE schema_migration DROP backward_compatible');
  await assertSchemaIsUsable(dataSource);
  await migrateAsNewerVersion(later('AddOwner4102444800000', true));
  await assertSchemaIsUsable(dataSource);
  await dataSource.query('ALTER TABLE schema_migration DROP backward_compatible');
  await expect(assertSchemaIsUsable(dataSource)).rejects.toThrow(/compatible: it has AddOwner4102444800000\. /);
});

test('a migration that does not say whether it is backward compatible is refused, before anything is applied', async () => {
  const { backwardCompatible: _, ...silent } = later('AddOwner4102444800001', true);
  dataSource.migrations.push(later('AddVet4102444800000', true), silent);
  await expect(migrate(dataSource)).rejects.toMatchObject({
    name: StartupError.name,
    message:
      'Migration AddOwner4102444800001 does not say whether earlier versions may run on its schema. ' +
      'Add to its class: readonly backwardCompatible = true (or false). See docs/upgrading.md.',
  });
  dataSource.migrations.splice(-2);
  await assertSchemaIsUsable(dataSource);
});

test('a migration that fails is undone and named', async () => {
  pushMigration({
    name: 'Broken4102444800000',
    backwardCompatible: true,
    up: async (queryRunner) => {
      await queryRunner.query('CREATE TABLE half_made ()');
      await queryRunner.query('SELECT 1 / 0');
    },
    down: () => Promise.resolve(),
  });
  await expect(migrate(dataSource)).rejects.toMatchObject({
    name: StartupError.name,
    message: 'Migration Broken4102444800000 failed and was undone: division by zero',
  });
  expect(await dataSource.query(`SELECT to_regclass('half_made') AS name`)).toEqual([{ name: null }]);
});

test('a migration that fails for an error that makes the database unavailable to requests is named with its cause', async () => {
  pushMigration({
    name: 'Fileless4102444800000',
    backwardCompatible: true,
    up: async (queryRunner) => {
      await queryRunner.query(`DO $$ BEGIN RAISE 'could not access file "$libdir/x"' USING ERRCODE = '58P01'; END $$`);
    },
    down: () => Promise.resolve(),
  });
  await expect(migrate(dataSource)).rejects.toMatchObject({
    name: StartupError.name,
    message: 'Migration Fileless4102444800000 failed and was undone: could not access file "$libdir/x"',
  });
});

if (engine === 'postgresql') {
  test('instances that migrate at once do not collide', async () => {
    const empty = await createEmptyTestDatabase();
    const config = readConfig({ ...empty.ownerSettings, MIGRATE_ON_START: 'true', STATEMENT_TIMEOUT_MS: '100' });
    const options = await dataSourceOptions(config);
    const starts = await Promise.all(Array.from({ length: 5 }, () => openCurrentDatabase(options)));
    expect((await migrationStatus(starts[0] as DataSource)).every(({ appliedAt }) => appliedAt !== undefined)).toBe(
      true,
    );
    await Promise.all(starts.map((start) => start.destroy()));
    await empty.drop();
  });

  test.each([
    [
      'an unknown password',
      (url: URL) => (url.password = 'secret-word'),
      /: PostgreSQL at .+ refuses user '\w+_service'\. Correct/,
    ],
    [
      'an unknown database',
      (url: URL) => (url.pathname = '/none'),
      /: PostgreSQL at .+ has no database 'none'\. Create it/,
    ],
    [
      'a port where nobody listens',
      (url: URL) => (url.port = '1'),
      /: nothing answers at 127\.0\.0\.1:1\. Start PostgreSQL/,
    ],
    ['an unknown host', (url: URL) => (url.host = 'none.invalid'), /: the host 'none\.invalid' /],
  ])('DATABASE_URL with %s is refused in one line without the password', async (_what, change, expected) => {
    const url = new URL(database.settings.DATABASE_URL ?? '');
    change(url);
    const refusal = await openDatabase(readConfig({ DATABASE_URL: url.href })).catch(
      (error: unknown) => error as Error,
    );
    expect(refusal).toBeInstanceOf(StartupError);
    const { message } = refusal as Error;
    expect(message).toMatch(expected);
    expect(message).toMatch(/^DATABASE_URL: .+\.$/);
    expect(message).not.toContain(url.password);
  });

  test('the server runs the version that is meant', async () => {
    const client = new pg.Client({ connectionString: database.settings.DATABASE_URL });
    await client.connect();
    const { rows } = await client.query<{ version: number }>(
      `SELECT current_setting('server_version_num')::int AS version`,
    );
    await client.end();
    expect(rows[0]?.version).toBeGreaterThanOrEqual(150000);
  });
}
