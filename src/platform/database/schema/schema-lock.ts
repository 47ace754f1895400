import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource, QueryRunner } from 'typeorm';
import { StartupError } from '../../errors/startup-error.js';

/** Longest time in ms that a process waits while another one changes the schema. */
const SCHEMA_LOCK_TIMEOUT_MS = 60_000;
const SCHEMA_LOCK_POLL_MS = 100;

/**
 * Longest time in ms that a statement of a migration waits for a lock (PostgreSQL's `lock_timeout`). Reads queue behind a
 * statement that waits for ACCESS EXCLUSIVE, so the wait blocks them for at most this time.
 */
export const LOCK_TIMEOUT_MS = 2_000;

/** Key of the advisory lock that every schema change takes: 'petstore' in ASCII. */
const LOCK_KEY = '8099007544119226981';

/** The limits of the session while the schema changes, in ms; 0 is none. PostgreSQL 17 and later have `transaction_timeout`. */
const LIMITS = { statement_timeout: 0, transaction_timeout: 0, lock_timeout: LOCK_TIMEOUT_MS };

const SET_LIMITS = `
  SELECT set_config(name, limits ->> name, false) FROM pg_settings, (SELECT $1::json) l (limits)
  WHERE limits ->> name IS NOT NULL`;

/**
 * Runs `work`, which changes the schema, under a lock against other processes. `work` must use the connection that holds the
 * lock: PostgreSQL binds an advisory lock to its session, and the embedded engine has no second connection. The statements
 * have no time limit, but wait at most LOCK_TIMEOUT_MS for a lock.
 *
 * @throws StartupError when another process holds the lock for over 60 s
 */
export async function withSchemaLock<T>(
  dataSource: DataSource,
  work: (queryRunner: QueryRunner) => Promise<T>,
): Promise<T> {
  const queryRunner = dataSource.createQueryRunner('master');
  try {
    await queryRunner.query(SET_LIMITS, [LIMITS]);
    await acquireSchemaLock(queryRunner);
    try {
      return await work(queryRunner);
    } finally {
      await queryRunner.query(`SELECT pg_advisory_unlock(${LOCK_KEY})`).catch(() => undefined);
      // The embedded engine serves requests with this session; those to a server are closed after the work.
      await queryRunner.query('RESET lock_timeout').catch(() => undefined);
    }
  } finally {
    await queryRunner.release();
  }
}

async function acquireSchemaLock(queryRunner: QueryRunner): Promise<void> {
  const deadline = Date.now() + SCHEMA_LOCK_TIMEOUT_MS;
  // Polls, because a statement that waits for the lock would block CREATE INDEX CONCURRENTLY in the process that holds it:
  // a deadlock.
  while (Date.now() < deadline) {
    const query = `SELECT pg_try_advisory_lock(${LOCK_KEY}) AS acquired`;
    const [{ acquired }] = (await queryRunner.query(query)) as [{ acquired: boolean }];
    if (acquired) return;
    await sleep(SCHEMA_LOCK_POLL_MS);
  }
  throw new StartupError(
    `Another process has been migrating this database for over ${SCHEMA_LOCK_TIMEOUT_MS / 1000} s. Try again when it has finished.`,
  );
}
