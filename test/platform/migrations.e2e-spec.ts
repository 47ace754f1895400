import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { ApiKeysService } from '#access';
import { StartupError } from '#runtime';
import { migrate, type Migration, migrationStatus, revertLastMigration, schemaFault } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { PET_STORE } from '../../src/app.description.js';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { dataSourceOptions, openCurrentDatabase, openDatabase } from '../../libs/postgres/src/data-source.js';
import { entitiesOf } from '../../libs/service/src/without-service.js';
import { AppModule } from '../../src/app.module.js';
import { schemaDifferences } from '../kit/start-test-app.js';
import { createTestApp } from '../support/app.js';
import {
  administerTestDatabase,
  createEmptyTestDatabase,
  createTestDatabase,
  engine,
  type TestDatabase,
} from '../support/database.js';
import { until } from '../support/until.js';

let database: TestDatabase;
let dataSource: DataSource;

/** All entities of every feature. A new entity is compared with its migration without a change here. */
const ENTITIES = await entitiesOf(AppModule, readConfig({}));

beforeEach(async () => {
  database = await createTestDatabase();
  dataSource = await start(database.ownerSettings, ENTITIES);
});

afterEach(async () => {
  if (dataSource.isInitialized) await dataSource.destroy();
  await database.drop();
});

/** Tables and types, except the table of applied migrations. */
const SCHEMA_OBJECTS = `SELECT relname AS name FROM pg_class
  WHERE relnamespace = current_schema::regnamespace AND relname NOT LIKE '%schema_migration%' AND relname <> 'typeorm_metadata'
  UNION SELECT typname FROM pg_type WHERE typnamespace = current_schema::regnamespace AND typtype = 'e'`;

test('all migrations can be reverted, which leaves nothing, and applied again', async () => {
  const names = (await migrationStatus(dataSource)).map(({ name }) => name);
  expect(names.length).toBeGreaterThan(0);
  expect(await migrate(dataSource)).toEqual([]);

  for (const name of [...names].reverse()) {
    expect(await revertLastMigration(dataSource)).toBe(name);
  }
  expect(await revertLastMigration(dataSource)).toBeUndefined();
  expect(await dataSource.query(SCHEMA_OBJECTS)).toEqual([]);
  expect((await migrationStatus(dataSource)).every(({ appliedAt }) => appliedAt === undefined)).toBe(true);

  const lines: string[] = [];
  expect(await migrateTo(lines)).toEqual(names);
  expect(lines).toEqual(names.map((name, index) => `${index + 1}/${names.length} ${name}`));
  expect((await migrationStatus(dataSource)).every(({ appliedAt }) => appliedAt instanceof Date)).toBe(true);
  expect(schemaFault(await migrationStatus(dataSource), PET_STORE.product)).toBeUndefined();
});

test('entities and migrations describe the same schema', async () => {
  expect(ENTITIES).toContain(PetEntity);
  expect(await schemaDifferences(dataSource)).toEqual([]);
});

/** Reads and checks the schema as a start with these settings does. */
async function start(settings: Record<string, string>, entities: (new () => object)[] = []): Promise<DataSource> {
  return openCurrentDatabase({ ...(await dataSourceOptions(readConfig(settings), MIGRATIONS)), entities });
}

/** Runs the statements of a migration. */
function running(...statements: string[]): (queryRunner: QueryRunner) => Promise<void> {
  return async (queryRunner) => {
    for (const statement of statements) await queryRunner.query(statement);
  };
}

/** Adds a migration to those of this version. Unless told otherwise, it makes a table. */
function pushMigration(name: string, more: Partial<Migration> = {}): void {
  const up = running(`CREATE TABLE ${name.toLowerCase()} ()`);
  dataSource.migrations.push({ name, backwardCompatible: true, up, down: () => Promise.resolve(), ...more });
}

/** Migrates, and notes the lines that it reports. */
function migrateTo(lines: string[]): Promise<string[]> {
  return migrate(dataSource, (line) => lines.push(line));
}

const refusal = (message: unknown): object => ({ name: StartupError.name, message });

/** Applies a migration as a newer version does; afterwards this version does not know it. */
async function migrateAsNewerVersion(name: string, backwardCompatible: boolean): Promise<void> {
  pushMigration(name, { backwardCompatible });
  expect(await migrate(dataSource)).toEqual([name]);
  dataSource.migrations.pop();
}

test('a newer schema is accepted unless an unknown migration is declared incompatible, which the refusal names', async () => {
  await migrateAsNewerVersion('AddOwner4102444800000', true);
  const added = { name: 'AddOwner4102444800000', isKnown: false, backwardCompatible: true };
  expect((await migrationStatus(dataSource)).at(-1)).toEqual({ ...added, appliedAt: expect.any(Date) as Date });
  await expect(revertLastMigration(dataSource)).rejects.toThrow(
    'Migration AddOwner4102444800000 is unknown to this version. Revert it with the version that applied it.',
  );
  await dataSource.destroy();
  for (const MIGRATE_ON_START of ['true', 'false'])
    await (await start({ ...database.ownerSettings, MIGRATE_ON_START })).destroy();

  dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
  await migrateAsNewerVersion('DropName4102444800001', false);
  await dataSource.destroy();
  const message =
    'The database schema is newer than this version and not backward compatible: it has DropName4102444800001. ' +
    'Start the version that applied it, or revert with its command migrate:revert. Set the database of another application to an ' +
    'empty one.';
  for (const MIGRATE_ON_START of ['true', 'false']) {
    const refused = start({ ...database.ownerSettings, MIGRATE_ON_START });
    await expect(refused).rejects.toMatchObject(refusal(message));
  }
});

test('a migration without backwardCompatible is refused before any migration is applied', async () => {
  pushMigration('AddVet4102444800000');
  pushMigration('AddOwner4102444800001', { backwardCompatible: undefined as never });
  const message =
    'Migration AddOwner4102444800001 does not say whether earlier versions may run on its schema. ' +
    'Add to its class: readonly backwardCompatible = true (or false). See migrations/README.md.';
  await expect(migrate(dataSource)).rejects.toMatchObject(refusal(message));
  dataSource.migrations.splice(-2);
  expect(schemaFault(await migrationStatus(dataSource), PET_STORE.product)).toBeUndefined();
});

test.each([
  ['SELECT 1 / 0', 'division by zero'],
  // Requests get this error as 503.
  [`DO $$ BEGIN RAISE 'could not access file' USING ERRCODE = '58P01'; END $$`, 'could not access file'],
])('a failed migration is rolled back, and the error names it and its cause: %s', async (statement, cause) => {
  pushMigration('Broken4102444800000', { up: running('CREATE TABLE half_made ()', statement) });
  const message = `Migration Broken4102444800000 failed and was undone: ${cause}`;
  await expect(migrate(dataSource)).rejects.toMatchObject(refusal(message));
  expect(await dataSource.query(`SELECT to_regclass('half_made') AS name`)).toEqual([{ name: null }]);
});

test('a migration that never gets its lock is tried 30 times, with pauses of 2 s, and the error names the cause', async () => {
  const name = 'Late4102444800000';
  const late = (): Promise<void> => Promise.reject(Object.assign(new Error('lock timeout'), { code: '55P03' }));
  pushMigration(name, { up: late });
  const { setTimeout: wait } = globalThis;
  const pauses = import.meta.jest
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation((work, ms) => wait(work, ms === 2_000 ? 0 : ms));
  const lines: string[] = [];
  const migration = migrateTo(lines).finally(() => pauses.mockRestore());
  const message = /^Migration Late\d+ failed and was undone: lock timeout\. A long transaction/;
  await expect(migration).rejects.toMatchObject(refusal(expect.stringMatching(message)));
  expect(lines).toHaveLength(29);
  expect(lines[28]).toBe(`${name} got no lock in time, attempt 29. It tries again.`);
});

/** Adds a migration that creates the index `ix_test` without a transaction. */
function pushIndex(name: string, statement = 'CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_test ON pet (name)'): void {
  pushMigration(name, { transaction: false, up: running(statement), down: running('DROP INDEX CONCURRENTLY ix_test') });
}

/** Whether the index `ix_test` is valid; no row if it does not exist. */
async function validity(): Promise<unknown> {
  return dataSource.query(`SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('ix_test')`);
}

test('an invalid index is named, and its migration is recorded only when the index was dropped and made anew', async () => {
  const pets = dataSource.getRepository(PetEntity);
  await pets.save(['7', '8'].map((categoryId) => ({ name: 'Rex', categoryId })));
  const name = 'UniqueName4102444800000';
  const statement = '-- unique names\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS ix_test ON pet (name)';
  pushIndex(name, statement);
  await expect(migrate(dataSource)).rejects.toThrow(
    `Migration ${name} failed: could not create unique index "ix_test"`,
  );
  await pets.delete({ categoryId: '8' });
  await expect(migrate(dataSource)).rejects.toThrow(
    `Migration ${name} failed: invalid index ix_test. Drop it (DROP INDEX CONCURRENTLY), and run migrate again.`,
  );
  expect((await migrationStatus(dataSource)).at(-1)).toMatchObject({ name, appliedAt: undefined });

  await dataSource.query('DROP INDEX CONCURRENTLY ix_test');
  expect(await migrate(dataSource)).toEqual([name]);
  expect(await validity()).toEqual([{ indisvalid: true }]);
  expect((await migrationStatus(dataSource)).at(-1)).toMatchObject({ name, backwardCompatible: true });
  expect(await revertLastMigration(dataSource)).toBe(name);
  expect(await validity()).toEqual([]);
});

test('a migration that TypeORM generates for a view entity finds the table typeorm_metadata', async () => {
  const empty = await createEmptyTestDatabase();
  await dataSource.destroy();
  dataSource = await openDatabase(readConfig(empty.ownerSettings), MIGRATIONS);
  const insert = `INSERT INTO "typeorm_metadata"("database", "schema", "table", "type", "name", "value")
    VALUES (DEFAULT, 'public', DEFAULT, 'VIEW', 'v', 'SELECT 1')`;
  pushMigration('AddView4102444800000', { up: running(insert) });
  expect(await migrate(dataSource)).toContain('AddView4102444800000');
  await dataSource.destroy();
  await empty.drop();
});

test('statements of a migration wait 2 s for a lock, run without a limit, and later ones wait as before', async () => {
  const limits: unknown[] = [];
  await dataSource.query(`CREATE MATERIALIZED VIEW refreshed AS SELECT current_setting('lock_timeout') AS value`);
  await dataSource.query('CREATE UNIQUE INDEX ON refreshed (value)');
  // It waits for its lock without a limit.
  pushIndex('IndexName4102444799999');
  pushMigration('SeeLimits4102444800000', {
    up: async (queryRunner) => {
      await queryRunner.query('REFRESH MATERIALIZED VIEW CONCURRENTLY refreshed');
      for (const name of ['lock_timeout', 'statement_timeout', 'transaction_timeout']) {
        limits.push(await queryRunner.query(`SELECT current_setting('${name}', true) AS value`));
      }
    },
  });
  await migrate(dataSource);
  expect(await dataSource.query('SELECT value FROM refreshed')).toEqual([{ value: '2s' }]);
  // PostgreSQL before version 17 has no transaction_timeout.
  expect(limits.slice(0, 2)).toEqual([[{ value: '2s' }], [{ value: '0' }]]);
  expect([[{ value: '0' }], [{ value: null }]]).toContainEqual(limits[2]);
  expect(await dataSource.query('SHOW lock_timeout')).toEqual([{ lock_timeout: '0' }]);
});

const CLIENT_NAMES = 'CompareClientNamesAsBytes1795824060000';
const MIGRATION_NAMES = 'CompareMigrationsAsBytes1795824000000';

/** Reverts the migrations that make names compare as bytes, and later ones of features. */
async function revertBytes(): Promise<void> {
  const reverted: unknown[] = [];
  while (reverted.at(-1) !== MIGRATION_NAMES && reverted.length < 10)
    reverted.push(await revertLastMigration(dataSource));
  expect(reverted).toEqual(expect.arrayContaining([CLIENT_NAMES, MIGRATION_NAMES]));
}

test('names of clients and migrations compare as bytes, and typeorm_metadata has a primary key, also where an operator has added one', async () => {
  await revertBytes();
  await dataSource.query('ALTER TABLE typeorm_metadata ADD own int PRIMARY KEY');
  expect(await migrate(dataSource)).toEqual(expect.arrayContaining([MIGRATION_NAMES, CLIENT_NAMES]));
  await revertBytes();
  await dataSource.query('ALTER TABLE typeorm_metadata DROP own');
  await migrate(dataSource);
  expect(
    await dataSource.query(`
      SELECT attrelid::regclass::text AS name FROM pg_attribute
      WHERE attcollation = (SELECT oid FROM pg_collation WHERE collname = 'C' AND collnamespace = 'pg_catalog'::regnamespace)
        AND attname = 'name' AND attrelid IN ('client'::regclass, 'schema_migration'::regclass) ORDER BY 1`),
  ).toEqual([{ name: 'client' }, { name: 'schema_migration' }]);
  const key = `SELECT FROM pg_constraint WHERE conname = 'pk_typeorm_metadata'`;
  expect(await dataSource.query(key)).toHaveLength(1);
});

test('clients that a changed collation has let in with one name are named, and renamed by the advice', async () => {
  await revertBytes();
  await dataSource.query('ALTER TABLE client DROP CONSTRAINT uq_client_name');
  await dataSource.query(`INSERT INTO client (name) VALUES ('twin'), ('other'), ('twin')`);
  const fault = await migrate(dataSource).catch((error: Error) => error.message);
  expect(fault).toMatch(
    /^Migration CompareClientNamesAsBytes\d+ failed and was undone: the clients with the ids 1, 3 have the same name\. /,
  );
  const [advice = ''] = /UPDATE client .+ WHERE id = /.exec(String(fault)) ?? [];
  await dataSource.query(`${advice}3`);
  expect((await migrate(dataSource))[0]).toBe(CLIENT_NAMES);
});

if (engine === 'postgresql') {
  test('a publication of all tables refuses no deletion in tables of the platform', async () => {
    await administerTestDatabase(database, 'CREATE PUBLICATION test_all FOR ALL TABLES');
    await dataSource.query('UPDATE typeorm_metadata SET value = NULL');
    await dataSource.query('DELETE FROM typeorm_metadata');
  });

  test('names begin to compare as bytes while requests with the client and new keys are served', async () => {
    const app = await createTestApp({ database });
    const keys = app.nest.get(ApiKeysService);
    const { secret } = await keys.create({ client: 'app' });
    const failures: unknown[] = [];
    let rounds = 0;
    let isOver = false;
    const requests = (async () => {
      for (; !isOver; rounds++) {
        // A refresh of the key each time.
        app.clock.travelTo(Date.now() + rounds * 1_000);
        const { status } = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { apiKey: secret });
        if (status !== 201) failures.push(status);
        await keys.create({ client: 'app' }).catch((error: unknown) => failures.push(error));
        if ((await keys.list({ client: 'app' })).length !== rounds + 2) failures.push('list');
      }
    })();
    for (let round = 0; round < 3; round++) {
      const before = rounds;
      await until(() => rounds > before + 2);
      await revertBytes();
      await migrate(dataSource);
    }
    isOver = true;
    await requests;
    expect([failures, await app.sql(`SELECT count(*)::int FROM client WHERE name = 'app'`)]).toEqual([[], [[1]]]);
    await app.close();
  });

  /** Opens another session of the owner, as a backup or an analyst does. */
  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: database.ownerSettings.DATABASE_URL });
    await client.connect();
    return client;
  }

  /** Waits until a statement of this database that matches waits for a lock. */
  async function untilBlocked(statement: string): Promise<void> {
    const watcher = await connect();
    const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1`;
    await until(async () => (await watcher.query(blocked, [statement])).rowCount === 1);
    await watcher.end();
  }

  test('a migration that waits for a long transaction blocks reads until its limit of 2 s, and is repeated', async () => {
    const [backup, reader] = [await connect(), await connect()];
    await backup.query('BEGIN');
    // A backup locks every table, also that of the migrations.
    await backup.query('SELECT count(*) FROM pet, schema_migration');
    const lines: string[] = [];
    pushMigration('AddNote4102444800000', {
      up: running('CREATE TABLE IF NOT EXISTS half_made ()', 'ALTER TABLE pet ADD note text'),
    });
    const migration = migrateTo(lines);
    let isOver = false;
    let reads = 0;
    const reading = (async () => {
      for (; !isOver; reads++) await reader.query('SELECT count(*) FROM pet');
    })();
    await untilBlocked('SELECT count(*) FROM pet');
    // The backup goes on; the read gets its turn when the migration gives up.
    const before = reads;
    await until(() => reads > before);
    await backup.query('ROLLBACK');
    expect(await migration).toEqual(['AddNote4102444800000']);
    isOver = true;
    await reading;
    expect(lines[0]).toMatch(/ got no lock in time, attempt 1\./);
    expect(lines.at(-1)).toBe('1/1 AddNote4102444800000');
    expect(await dataSource.query('SELECT note FROM pet')).toEqual([]);
    await Promise.all([backup.end(), reader.end()]);
  });

  test('a concurrent index waits longer than 2 s for a long transaction, and blocks neither reads nor writes', async () => {
    const [backup, writer, other] = [await connect(), await connect(), await connect()];
    await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await backup.query('SELECT count(*) FROM pet');
    pushIndex('IndexName4102444800000');
    const lines: string[] = [];
    const migration = migrateTo(lines);
    await untilBlocked('CREATE INDEX CONCURRENTLY%');
    await backup.query('SELECT pg_advisory_lock(1)');
    let isOver = false;
    // Begins to wait later, and gives up after 2 s.
    const limit = other.query(`SET lock_timeout = '2s'; SELECT pg_advisory_lock(1)`).finally(() => (isOver = true));
    const late = expect(limit).rejects.toThrow('lock timeout');
    while (!isOver) {
      await writer.query(`INSERT INTO pet (name, category_id) VALUES ('Rex', 7)`);
      await writer.query('SELECT count(*) FROM pet');
    }
    await late;
    await backup.query('COMMIT');
    expect(await migration).toEqual(['IndexName4102444800000']);
    expect([lines, await validity()]).toEqual([['1/1 IndexName4102444800000'], [{ indisvalid: true }]]);
    await Promise.all([backup.end(), writer.end(), other.end()]);
  });

  test('a migration whose COMMIT stays unanswered is not reported as undone', async () => {
    pushMigration('Unconfirmed4102444800000', {
      up: running(
        `CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`,
        `CREATE CONSTRAINT TRIGGER break AFTER INSERT ON client DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION break()`,
        `INSERT INTO client (name) VALUES ('unconfirmed')`,
      ),
    });
    await expect(migrate(dataSource)).rejects.toThrow(
      'Migration Unconfirmed4102444800000 failed or was applied without a confirmation: ',
    );
  });

  test('a SIGTERM ends a migration also when PostgreSQL cannot be told', async () => {
    pushMigration('Stopped4102444800000', {
      up: () => {
        import.meta.jest.spyOn(dataSource, 'query').mockRejectedValueOnce(new Error('no connection'));
        return Promise.resolve(void process.emit('SIGTERM'));
      },
    });
    const sentence = 'A signal has ended the change of the schema. What is complete is kept.';
    await expect(migrate(dataSource)).rejects.toThrow(sentence);
  });

  test('five instances that migrate at the same moment all start on the migrated schema', async () => {
    const empty = await createEmptyTestDatabase();
    const settings = { ...empty.ownerSettings, MIGRATE_ON_START: 'true', STATEMENT_TIMEOUT_MS: '100' };
    const started = await Promise.all(Array.from({ length: 5 }, () => start(settings)));
    const status = await migrationStatus(started[0] as DataSource);
    expect(status.every(({ appliedAt }) => appliedAt !== undefined)).toBe(true);
    await Promise.all(started.map((each) => each.destroy()));
    await empty.drop();
  });
}
