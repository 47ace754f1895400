import type { DataSource, QueryRunner } from 'typeorm';
import { ApiError } from '#errors';
import { StartupError } from '#runtime';
import { databaseFault, isOutcomeUnknown } from '../connections/connection-errors.js';
import { EXACT } from '../statements.js';
import {
  appliedMigrations,
  foreignSchema,
  knownMigrations,
  type Migration,
  migrationStatus,
} from './migration-history.js';
import { LOCK_TIMEOUT_MS, withSchemaLock } from './schema-lock.js';

/** Largest number of attempts of one change to get its locks. With the pauses they take two minutes. */
const LOCK_ATTEMPTS = 30;

/** Pause in ms between two attempts, in which the requests that queued behind the lock are served. */
const PAUSE_MS = 2_000;

/** SQLSTATEs of a statement that did not get a lock in time, and of one that PostgreSQL chose to end a deadlock. */
const NO_LOCK = new Set<unknown>(['55P03', '40P01']);

/**
 * TypeORM's own table, with the additional columns `applied_at` and `backward_compatible`; and that in which generated migrations
 * store the definitions of views and generated columns, which TypeORM would create for entities only.
 */
const CREATE_TABLES = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_schema_migration PRIMARY KEY,
    timestamp bigint NOT NULL,
    name varchar NOT NULL CONSTRAINT uq_schema_migration_name UNIQUE,
    applied_at timestamptz NOT NULL DEFAULT now(),
    backward_compatible boolean NOT NULL DEFAULT false
  );
  CREATE TABLE IF NOT EXISTS typeorm_metadata (
    type varchar NOT NULL, database varchar, schema varchar, "table" varchar, name varchar, value text)`;

const RECORD = 'INSERT INTO schema_migration (timestamp, name, backward_compatible) VALUES ($1, $2, $3)';

/** Indexes of tables outside the system's schemas; an index of a partitioned table is invalid until its parts are attached. */
const INVALID_INDEXES = `${EXACT}
  SELECT indexrelid::regclass::text AS name
  FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_namespace n ON n.oid = relnamespace
  WHERE NOT indisvalid AND relkind = 'i' AND nspname !~ '^(pg_|information_schema$)' ORDER BY 1`;

/** Tables on which managed databases switch row level security on as soon as they are made. */
const SECURED = `${EXACT}
  SELECT string_agg(oid::regclass::text, ', ' ORDER BY oid) AS names FROM pg_class
  WHERE relrowsecurity AND relnamespace = to_regnamespace(current_schema())`;

/** Takes a line for the operator while the schema changes. */
type Report = (line: string) => void;

/**
 * Applies the pending migrations in order, each in a transaction unless it declares
 * `transaction = false`. Processes that migrate at the same time wait for each other; the second one finds nothing to do.
 *
 * - In a transaction no statement waits for a lock longer than 2 s, because reads would queue behind it. After that the
 *   migration is undone, and tried again after a pause of 2 s: 30 attempts in all.
 * - Without a transaction a statement waits for its lock without limit: a `CREATE INDEX CONCURRENTLY` that is given up
 *   leaves an invalid index. The migration must be able to continue from any of its statements, also after a crash.
 *
 * @returns the names of the applied migrations
 * @throws StartupError when the schema is another version's and not compatible, a migration fails (it is rolled back) or leaves an invalid index, or the lock is held for over 60 s
 */
export async function migrate(dataSource: DataSource, report: Report = () => undefined): Promise<string[]> {
  const known = knownMigrations(dataSource);
  return withSchemaLock(dataSource, async (queryRunner) => {
    const status = await migrationStatus(dataSource, queryRunner);
    const fault = foreignSchema(status);
    if (fault !== undefined) throw fault;
    const pending = status.filter(({ appliedAt }) => appliedAt === undefined).map(({ name }) => name);
    for (const [index, name] of pending.entries()) {
      const migration = known.get(name) as Migration;
      await change(queryRunner, name, migration, report, async () => {
        // In the transaction, so that a migration which is undone leaves nothing; and only here, because a read-only database
        // and a user without the right to create tables are accepted as long as nothing is pending.
        await queryRunner.query(CREATE_TABLES).catch((error: unknown) => Promise.reject(databaseFault(error) ?? error));
        await migration.up(queryRunner);
        await refuseInvalidIndexes(queryRunner);
        await queryRunner.query(RECORD, [name.slice(-13), name, migration.backwardCompatible]);
      });
      report(`${index + 1}/${pending.length} ${name}`);
    }
    // The owner sees all rows, so only the service would notice.
    const [{ names }] = (await queryRunner.query(SECURED)) as [{ names: string | null }];
    if (names !== null) {
      report(
        `Row level security is on for ${names}. The role of the service must see every row of the platform's tables: ` +
          'ALTER TABLE … DISABLE ROW LEVEL SECURITY.',
      );
    }
    return pending;
  });
}

/**
 * Reverts the migration that was applied last, and returns its name; undefined when none is applied. Waits for locks as `migrate` does.
 *
 * @throws StartupError when the revert fails (it is rolled back), the migration or the schema is another version's, or the lock is held for over 60 s
 */
export async function revertLastMigration(
  dataSource: DataSource,
  report: Report = () => undefined,
): Promise<string | undefined> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const fault = foreignSchema(await migrationStatus(dataSource, queryRunner));
    if (fault !== undefined) throw fault;
    const last = [...(await appliedMigrations(queryRunner)).keys()].at(-1);
    if (last === undefined) return undefined;
    const migration = knownMigrations(dataSource).get(last);
    if (migration === undefined) {
      throw new StartupError(
        `Migration ${last} is unknown to this version. Revert it with the version that applied it.`,
      );
    }
    await change(queryRunner, last, migration, report, async () => {
      await migration.down(queryRunner);
      await queryRunner.query('DELETE FROM schema_migration WHERE name = $1', [last]);
    });
    return last;
  });
}

async function refuseInvalidIndexes(queryRunner: QueryRunner): Promise<void> {
  const invalid = (await queryRunner.query(INVALID_INDEXES)) as { name: string }[];
  if (invalid.length === 0) return;
  const names = invalid.map(({ name }) => name).join(', ');
  throw new Error(`invalid index ${names}. Drop it (DROP INDEX CONCURRENTLY), and run migrate again.`);
}

/** Repeats `work`, which applies or reverts a migration, when it did not get a lock in time. */
async function change(
  queryRunner: QueryRunner,
  name: string,
  { transaction }: Migration,
  report: Report,
  work: () => Promise<void>,
): Promise<void> {
  const isTransactional = transaction !== false;
  for (let attempt = 1; ; attempt++) {
    try {
      await queryRunner.query(`SET lock_timeout = ${isTransactional ? LOCK_TIMEOUT_MS : 0}`);
      if (isTransactional) await queryRunner.startTransaction();
      await work();
      if (isTransactional) await queryRunner.commitTransaction();
      return;
    } catch (error) {
      if (queryRunner.isTransactionActive) await queryRunner.rollbackTransaction().catch(() => undefined);
      if (error instanceof StartupError) throw error;
      // PostgreSQL's error helps operators more than the public message.
      const { message, code } = (error instanceof ApiError ? error.cause : error) as NodeJS.ErrnoException;
      const isLate = NO_LOCK.has(code);
      if (!isLate || attempt === LOCK_ATTEMPTS) {
        const outcome = isOutcomeUnknown(error) ? ' or was applied without a confirmation' : ' and was undone';
        const undone = isTransactional ? outcome : '';
        const advice = isLate
          ? '. A long transaction holds its lock, such as a backup: pg_stat_activity shows it.'
          : '';
        throw new StartupError(`Migration ${name} failed${undone}: ${message}${advice}`, { cause: error });
      }
      report(`${name} got no lock in time, attempt ${attempt}. It tries again.`);
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  }
}
