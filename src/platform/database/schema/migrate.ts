import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { ApiError } from '../../errors/api-error.js';
import { StartupError } from '../../errors/startup-error.js';
import { appliedMigrations, knownMigrations } from './migration-history.js';
import { withSchemaLock } from './schema-lock.js';

/** TypeORM's own table, plus `applied_at` and what the migration declares. */
const CREATE_MIGRATION_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_schema_migration PRIMARY KEY,
    timestamp bigint NOT NULL,
    name varchar NOT NULL CONSTRAINT uq_schema_migration_name UNIQUE,
    applied_at timestamptz NOT NULL DEFAULT now(),
    backward_compatible boolean NOT NULL DEFAULT false
  )`;

/** For tables that were made before the column was. */
const ADD_BACKWARD_COMPATIBLE = `
  ALTER TABLE schema_migration ADD COLUMN IF NOT EXISTS backward_compatible boolean NOT NULL DEFAULT false`;

const RECORD = 'INSERT INTO schema_migration (timestamp, name, backward_compatible) VALUES ($1, $2, $3)';

/**
 * Applies the pending migrations in order, each in a transaction unless it says `transaction = false`. Processes that
 * migrate at the same time wait for each other; the second one finds nothing to do.
 *
 * @param onProgress called after each migration, with the number applied so far and the number to apply
 * @returns the names of the applied migrations
 * @throws StartupError when a migration fails, which is then rolled back, or another process migrates for over 60 s
 */
export async function migrate(
  dataSource: DataSource,
  onProgress?: (name: string, done: number, total: number) => void,
): Promise<string[]> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const applied = await appliedMigrations(queryRunner);
    const pending = knownMigrations(dataSource).filter(({ name }) => !applied.has(name));
    // A user who may not create tables, and a read-only database, pass when nothing is to be done.
    if (pending.length > 0) {
      await queryRunner.query(CREATE_MIGRATION_TABLE);
      await queryRunner.query(ADD_BACKWARD_COMPATIBLE);
    }
    for (const [index, { name, timestamp, migration }] of pending.entries()) {
      await change(queryRunner, name, migration, async () => {
        await migration.up(queryRunner);
        await queryRunner.query(RECORD, [timestamp, name, migration.backwardCompatible]);
      });
      onProgress?.(name, index + 1, pending.length);
    }
    return pending.map(({ name }) => name);
  });
}

/**
 * Reverts the migration that was applied last.
 *
 * @returns its name; undefined when none is applied
 * @throws StartupError when the revert fails, which is then rolled back, this version does not know the migration, or
 * another process migrates for over 60 s
 */
export async function revertLastMigration(dataSource: DataSource): Promise<string | undefined> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const last = [...(await appliedMigrations(queryRunner)).keys()].at(-1);
    if (last === undefined) return undefined;
    const known = knownMigrations(dataSource).find(({ name }) => name === last);
    if (known === undefined) {
      throw new StartupError(
        `Migration ${last} is unknown to this version. Revert it with the version that applied it.`,
      );
    }
    await change(queryRunner, last, known.migration, async () => {
      await known.migration.down(queryRunner);
      await queryRunner.query('DELETE FROM schema_migration WHERE name = $1', [last]);
    });
    return last;
  });
}

async function change(
  queryRunner: QueryRunner,
  name: string,
  migration: MigrationInterface,
  work: () => Promise<void>,
): Promise<void> {
  const inTransaction = migration.transaction !== false;
  try {
    if (inTransaction) await queryRunner.startTransaction();
    await work();
    if (inTransaction) await queryRunner.commitTransaction();
  } catch (error) {
    if (queryRunner.isTransactionActive) await queryRunner.rollbackTransaction().catch(() => undefined);
    const undone = inTransaction ? ' and was undone' : '';
    // The error of PostgreSQL says more than the one that clients get.
    const { message } = (error instanceof ApiError ? error.cause : error) as Error;
    throw new StartupError(`Migration ${name} failed${undone}: ${message}`, { cause: error });
  }
}
