import type { DataSource, QueryRunner } from 'typeorm';
import { StartupError } from '../../errors/startup-error.js';
import { withConcurrentIndexes } from './concurrent-indexes.js';
import { NoLockError, withLockRetries } from './lock-retries.js';
import { originalError } from './migration-error.js';
import { appliedMigrations, knownMigrations, type Migration } from './migration-history.js';
import { withSchemaLock } from './schema-lock.js';

/** TypeORM's own table, with the additional columns `applied_at` and `backward_compatible`. */
const CREATE_MIGRATION_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_schema_migration PRIMARY KEY,
    timestamp bigint NOT NULL,
    name varchar NOT NULL CONSTRAINT uq_schema_migration_name UNIQUE,
    applied_at timestamptz NOT NULL DEFAULT now(),
    backward_compatible boolean NOT NULL DEFAULT false
  )`;

/** For tables that were created without the column. */
const ADD_BACKWARD_COMPATIBLE = `
  ALTER TABLE schema_migration ADD COLUMN IF NOT EXISTS backward_compatible boolean NOT NULL DEFAULT false`;

const IS_PREPARED = `
  SELECT FROM pg_attribute WHERE attrelid = to_regclass('schema_migration') AND attname = 'backward_compatible'`;

const RECORD = 'INSERT INTO schema_migration (timestamp, name, backward_compatible) VALUES ($1, $2, $3)';

/** Gets reports while the schema changes. */
export interface MigrationObserver {
  /** Called after each migration, with the number applied so far and the number to apply. */
  onApplied?(name: string, done: number, total: number): void;
  /** Called when attempt number `attempt` of a migration got no lock within 2 s. It is repeated after a pause. */
  onLockRetry?(name: string, attempt: number): void;
}

/**
 * Applies the pending migrations in order, each in a transaction unless it declares `transaction = false`. Processes that
 * migrate at the same time wait for each other; the second one finds nothing to do.
 *
 * No statement waits for a lock longer than 2 s, because reads would queue behind it. After that the migration is undone,
 * and tried again after a pause of 2 s: 30 attempts in all. A migration without a transaction is repeated without being
 * undone, so it must be able to continue from any of its statements, also after a crash.
 *
 * @returns the names of the applied migrations
 * @throws StartupError when a migration fails (it is rolled back), or another process migrates for over 60 s
 */
export async function migrate(dataSource: DataSource, observer: MigrationObserver = {}): Promise<string[]> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const applied = await appliedMigrations(queryRunner);
    const pending = knownMigrations(dataSource).filter(({ name }) => !applied.has(name));
    // If nothing is pending, a read-only database and a user without the right to create tables are accepted.
    if (pending.length > 0) await prepareHistory(queryRunner, observer);
    for (const [index, { name, timestamp, migration }] of pending.entries()) {
      await change(queryRunner, name, migration, observer, async () => {
        await migration.up(queryRunner);
        await queryRunner.query(RECORD, [timestamp, name, migration.backwardCompatible]);
      });
      observer.onApplied?.(name, index + 1, pending.length);
    }
    return pending.map(({ name }) => name);
  });
}

/**
 * Reverts the migration that was applied last. Waits for locks as `migrate` does.
 *
 * @returns its name; undefined when none is applied
 * @throws StartupError when the revert fails (it is rolled back), this version does not know the migration, or another
 *   process migrates for over 60 s
 */
export async function revertLastMigration(
  dataSource: DataSource,
  observer: MigrationObserver = {},
): Promise<string | undefined> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const last = [...(await appliedMigrations(queryRunner)).keys()].at(-1);
    if (last === undefined) return undefined;
    const known = knownMigrations(dataSource).find(({ name }) => name === last);
    if (known === undefined) {
      throw new StartupError(
        `Migration ${last} is unknown to this version. Revert it with the version that applied it.`,
      );
    }
    await change(queryRunner, last, known.migration, observer, async () => {
      await known.migration.down(queryRunner);
      await queryRunner.query('DELETE FROM schema_migration WHERE name = $1', [last]);
    });
    return last;
  });
}

/** Creates or completes the table of applied migrations. If it is complete, takes no lock: `IF NOT EXISTS` does. */
async function prepareHistory(queryRunner: QueryRunner, observer: MigrationObserver): Promise<void> {
  const rows = (await queryRunner.query(IS_PREPARED)) as unknown[];
  if (rows.length > 0) return;
  const prepare = async (): Promise<void> => {
    await queryRunner.query(CREATE_MIGRATION_TABLE);
    await queryRunner.query(ADD_BACKWARD_COMPATIBLE);
  };
  await withLockRetries(prepare, (attempt) => observer.onLockRetry?.('schema_migration', attempt));
}

async function change(
  queryRunner: QueryRunner,
  name: string,
  migration: Migration,
  observer: MigrationObserver,
  work: () => Promise<void>,
): Promise<void> {
  const inTransaction = migration.transaction !== false;
  const attempt = async (): Promise<void> => {
    try {
      if (inTransaction) await queryRunner.startTransaction();
      await (inTransaction ? work() : withConcurrentIndexes(queryRunner, work));
      if (inTransaction) await queryRunner.commitTransaction();
    } catch (error) {
      if (queryRunner.isTransactionActive) await queryRunner.rollbackTransaction().catch(() => undefined);
      throw error;
    }
  };
  try {
    await withLockRetries(attempt, (number) => observer.onLockRetry?.(name, number));
  } catch (error) {
    const undone = inTransaction ? ' and was undone' : '';
    const { message } = originalError(error);
    const end = error instanceof NoLockError ? '.' : '';
    throw new StartupError(`Migration ${name} failed${undone}: ${message}${end}`, { cause: error });
  }
}
