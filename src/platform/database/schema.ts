import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { StartupError } from '../errors/startup-error.js';

/** A migration of this code or of the database, or of both. */
export interface MigrationStatus {
  readonly name: string;
  /** When it was applied; undefined while it is pending. */
  readonly appliedAt: Date | undefined;
  /** Whether this code knows it; false for those of a later version. */
  readonly isKnown: boolean;
}

/** Time in ms that a migration waits for one that another process runs. */
const LOCK_TIMEOUT_MS = 60_000;
const LOCK_POLL_MS = 100;
/** The advisory lock of everybody who changes the schema; 'petstore' in ASCII. */
const LOCK_KEY = '8099007544119226981';

/** In the `data` of a query runner: nobody gives up waiting for the answers to its statements. */
export const TAKES_ANY_TIME = 'takesAnyTime';

/** Laid out as TypeORM's own table, and with the time. */
const CREATE_MIGRATION_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_schema_migration PRIMARY KEY,
    timestamp bigint NOT NULL,
    name varchar NOT NULL CONSTRAINT uq_schema_migration_name UNIQUE,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`;

/**
 * Applies the pending migrations in order, each in a transaction unless it says `transaction = false`. Processes that
 * migrate at once wait for each other; the second finds nothing to do.
 *
 * @param onProgress told each migration that was applied, and how many there are to apply
 * @returns the names of those applied
 * @throws StartupError when a migration fails, which is then undone, or another process migrates for over 60 s
 */
export async function migrate(
  dataSource: DataSource,
  onProgress?: (name: string, done: number, total: number) => void,
): Promise<string[]> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    await queryRunner.query(CREATE_MIGRATION_TABLE);
    const applied = await appliedMigrations(queryRunner);
    const pending = knownMigrations(dataSource).filter(({ name }) => !applied.has(name));
    for (const [index, { name, timestamp, migration }] of pending.entries()) {
      await change(queryRunner, name, migration, async () => {
        await migration.up(queryRunner);
        await queryRunner.query('INSERT INTO schema_migration (timestamp, name) VALUES ($1, $2)', [timestamp, name]);
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
 * @throws StartupError when that fails, which is then undone, or this code does not know the migration
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

/** Every migration of this code and of the database, oldest first. */
export async function migrationStatus(dataSource: DataSource): Promise<MigrationStatus[]> {
  const queryRunner = dataSource.createQueryRunner('master');
  try {
    const applied = await appliedMigrations(queryRunner);
    const known = knownMigrations(dataSource).map(({ name }) => name);
    const unknown = [...applied.keys()].filter((name) => !known.includes(name));
    return [...known, ...unknown]
      .sort((a, b) => timestampOf(a) - timestampOf(b))
      .map((name) => ({ name, appliedAt: applied.get(name), isKnown: known.includes(name) }));
  } finally {
    await queryRunner.release();
  }
}

/**
 * Refuses a schema that is not the one of this code.
 *
 * @throws StartupError saying what to do
 */
export async function assertSchemaIsCurrent(dataSource: DataSource): Promise<void> {
  const status = await migrationStatus(dataSource);
  const pending = status.filter(({ appliedAt }) => appliedAt === undefined).length;
  if (pending > 0) {
    throw new StartupError(
      `The database schema is outdated: ${pending} migration(s) pending. Run: npm run petstore -- migrate`,
    );
  }
  const unknown = status.filter(({ isKnown }) => !isKnown);
  if (unknown.length > 0) {
    throw new StartupError(
      `The database schema is newer than this version: it has ${unknown.map(({ name }) => name).join(', ')}. ` +
        'Start the version that applied it, or revert with that version: npm run petstore -- migrate:revert',
    );
  }
}

/** Whether a schema with these applied migrations is the one of this code. */
export function isSchemaOfThisCode(dataSource: DataSource, applied: readonly string[]): boolean {
  const known = knownMigrations(dataSource);
  return known.length === applied.length && known.every(({ name }) => applied.includes(name));
}

interface KnownMigration {
  readonly name: string;
  readonly timestamp: number;
  readonly migration: MigrationInterface;
}

function knownMigrations(dataSource: DataSource): KnownMigration[] {
  return dataSource.migrations
    .map((migration) => {
      const name = migration.name ?? migration.constructor.name;
      return { name, timestamp: timestampOf(name), migration };
    })
    .sort((a, b) => a.timestamp - b.timestamp);
}

/** The last 13 characters of a migration's name are its time in ms, as TypeORM wants it. */
function timestampOf(name: string): number {
  return Number(name.slice(-13));
}

/** Names and times of the applied migrations, in the order of their application. */
async function appliedMigrations(queryRunner: QueryRunner): Promise<Map<string, Date>> {
  const exists = `SELECT to_regclass('schema_migration') IS NOT NULL AS exists`;
  const [{ exists: hasTable }] = (await queryRunner.query(exists)) as [{ exists: boolean }];
  if (!hasTable) return new Map();
  const rows = (await queryRunner.query('SELECT name, applied_at FROM schema_migration ORDER BY id')) as {
    name: string;
    applied_at: Date;
  }[];
  return new Map(rows.map((row) => [row.name, row.applied_at]));
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
    throw new StartupError(`Migration ${name} failed${undone}: ${(error as Error).message}`, { cause: error });
  }
}

/** On one connection, for the embedded engine has no more, and the lock belongs to the connection. */
async function withSchemaLock<T>(dataSource: DataSource, work: (queryRunner: QueryRunner) => Promise<T>): Promise<T> {
  const queryRunner = dataSource.createQueryRunner('master');
  try {
    // Migrations take the time they take, for PostgreSQL and for those who wait for it.
    queryRunner.data[TAKES_ANY_TIME] = true;
    await queryRunner.query('SET statement_timeout = 0');
    await acquireSchemaLock(queryRunner);
    try {
      return await work(queryRunner);
    } finally {
      await queryRunner.query(`SELECT pg_advisory_unlock(${LOCK_KEY})`).catch(() => undefined);
      await queryRunner.query('RESET statement_timeout').catch(() => undefined);
    }
  } finally {
    await queryRunner.release();
  }
}

async function acquireSchemaLock(queryRunner: QueryRunner): Promise<void> {
  const deadline = Date.now() + LOCK_TIMEOUT_MS;
  // Asked again and again: a statement that waits would hold up CREATE INDEX CONCURRENTLY, and that the lock.
  while (Date.now() < deadline) {
    const query = `SELECT pg_try_advisory_lock(${LOCK_KEY}) AS acquired`;
    const [{ acquired }] = (await queryRunner.query(query)) as [{ acquired: boolean }];
    if (acquired) return;
    await sleep(LOCK_POLL_MS);
  }
  throw new StartupError(
    `Another process has been migrating this database for over ${LOCK_TIMEOUT_MS / 1000} s. Try again when it has finished.`,
  );
}
