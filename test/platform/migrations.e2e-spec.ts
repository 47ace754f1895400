import pg from 'pg';
import type { DataSource } from 'typeorm';
import { readConfig } from '../../src/config.js';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { ApiKeyEntity } from '../../src/platform/api-keys/storage/api-key.entity.js';
import { ClientEntity } from '../../src/platform/api-keys/storage/client.entity.js';
import { KeyUsageEntity } from '../../src/platform/key-usage/key-usage.entity.js';
import { IdempotencyKeyEntity } from '../../src/platform/idempotency/idempotency-key.entity.js';
import { openCurrentDatabase, openDatabase } from '../../src/platform/database/data-source.js';
import { dataSourceOptions } from '../../src/platform/database/data-source-options.js';
import { migrate, revertLastMigration } from '../../src/platform/database/schema/migrate.js';
import { migrationStatus } from '../../src/platform/database/schema/migration-history.js';
import { assertSchemaIsCurrent } from '../../src/platform/database/schema/schema-check.js';
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
  await assertSchemaIsCurrent(dataSource);
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

test('an outdated schema is refused with the command to run', async () => {
  await revertLastMigration(dataSource);
  await dataSource.destroy();
  const options = await dataSourceOptions(readConfig({ ...database.ownerSettings, MIGRATE_ON_START: 'false' }));
  const message = 'The database schema is outdated: 1 migration(s) pending. Run: npm run petstore -- migrate';
  await expect(openCurrentDatabase(options)).rejects.toMatchObject({ name: StartupError.name, message });
});

test('a schema that is newer than the code is refused', async () => {
  const later = 'AddOwner4102444800000';
  await dataSource.query('INSERT INTO schema_migration (timestamp, name) VALUES ($1, $2)', [4102444800000, later]);
  const status = (await migrationStatus(dataSource)).at(-1);
  expect(status).toEqual({ name: later, appliedAt: expect.any(Date) as Date, isKnown: false });
  await expect(revertLastMigration(dataSource)).rejects.toThrow(StartupError);
  await dataSource.destroy();
  for (const MIGRATE_ON_START of ['true', 'false']) {
    const options = await dataSourceOptions(readConfig({ ...database.ownerSettings, MIGRATE_ON_START }));
    const message = expect.stringMatching(
      /^The database schema is newer than this version: it has AddOwner4102444800000\./,
    ) as string;
    await expect(openCurrentDatabase(options)).rejects.toMatchObject({ name: StartupError.name, message });
  }
});

test('a migration that fails is undone and named', async () => {
  dataSource.migrations.push({
    name: 'Broken4102444800000',
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
  dataSource.migrations.push({
    name: 'Fileless4102444800000',
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
