import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource, QueryRunner } from 'typeorm';
import { onStopSignal, StartupError } from '#runtime';
import { EXACT } from '../statements.js';

/** Longest time in ms that a process waits while another process changes the schema. */
const SCHEMA_LOCK_TIMEOUT_MS = 60_000;
const SCHEMA_LOCK_POLL_MS = 100;

/**
 * Longest time in ms that a statement of a migration waits for a lock (PostgreSQL's `lock_timeout`). Reads queue behind a
 * statement that waits for ACCESS EXCLUSIVE, so the wait blocks them for at most this time.
 */
export const LOCK_TIMEOUT_MS = 2_000;

/** Key of the advisory lock that every schema change takes. Releases that run at the same time need the same one. */
const LOCK_KEY = '8099007544119226981';

/** The limits of the session while the schema changes, in ms; 0 is none. PostgreSQL 17 and later have `transaction_timeout`. */
const LIMITS = { statement_timeout: 0, transaction_timeout: 0, lock_timeout: LOCK_TIMEOUT_MS };

const SET_LIMITS = `${EXACT}
  SELECT set_config(name, limits ->> name, false) FROM pg_settings, (SELECT $1::json) l (limits)
  WHERE limits ->> name IS NOT NULL`;

/** The process of a server that serves the session; none for the embedded engine, which ends with this process. */
async function serverProcess(through: DataSource | QueryRunner): Promise<string | undefined> {
  const query = `${EXACT}SELECT pid::text FROM pg_stat_activity WHERE pid = pg_backend_pid() AND backend_type = 'client backend'`;
  return ((await through.query(query)) as { pid: string }[])[0]?.pid;
}

/**
 * Runs `work`, which changes the schema, under a lock against other processes. `work` must use the connection that holds the
 * lock: PostgreSQL binds an advisory lock to its session, and the embedded engine has no second connection. The statements
 * wait at most LOCK_TIMEOUT_MS for a lock. SIGTERM and SIGINT end the session, and closing the data source waits for that.
 *
 * @throws StartupError when another process holds the lock for over 60 s, a signal arrives, or a pooler shares sessions
 */
export async function withSchemaLock<T>(
  dataSource: DataSource,
  work: (queryRunner: QueryRunner) => Promise<T>,
): Promise<T> {
  const queryRunner = dataSource.createQueryRunner('master');
  let forgetSignals: (() => void) | undefined;
  let isStopping = false;
  try {
    const pid = await serverProcess(queryRunner);
    if (pid !== undefined) {
      // Two connections with one session, or one connection with two.
      if ((await serverProcess(dataSource)) === pid || (await serverProcess(queryRunner)) !== pid) {
        throw new StartupError(
          'Migrations cannot pass a pooler in transaction mode: set DATABASE_DIRECT_URL to a URI that bypasses it.',
        );
      }
      const stop = (): void => {
        isStopping = true;
        dataSource.query(`${EXACT}SELECT pg_terminate_backend($1, 60000)::text`, [pid]).catch(() => undefined);
      };
      forgetSignals = onStopSignal(stop, () => process.exit(1));
    }
    await queryRunner.query(SET_LIMITS, [LIMITS]);
    // PostgreSQL notices that this process was killed, and ends its statement. On Windows it refuses the setting.
    await queryRunner.query(`SET client_connection_check_interval = '1s'`).catch(() => undefined);
    await acquireSchemaLock(queryRunner);
    try {
      const result = await work(queryRunner);
      // The session may have outlived the signal, because PostgreSQL was not told in time.
      if (isStopping) throw new StartupError('A signal has ended the change of the schema. What is complete is kept.');
      return result;
    } finally {
      await queryRunner.query(`${EXACT}SELECT pg_advisory_unlock(${LOCK_KEY})::text`).catch(() => undefined);
      // The embedded engine serves requests with this session; those to a server are closed after the work.
      await queryRunner.query('RESET lock_timeout').catch(() => undefined);
    }
  } finally {
    forgetSignals?.();
    await queryRunner.release();
  }
}

async function acquireSchemaLock(queryRunner: QueryRunner): Promise<void> {
  const deadline = Date.now() + SCHEMA_LOCK_TIMEOUT_MS;
  // Polls, because a statement that waits for the lock would block CREATE INDEX CONCURRENTLY in the process that holds it:
  // a deadlock.
  while (Date.now() < deadline) {
    const query = `${EXACT}SELECT pg_try_advisory_lock(${LOCK_KEY})::text AS acquired`;
    const [{ acquired }] = (await queryRunner.query(query)) as [{ acquired: string }];
    if (acquired === 'true') return;
    await sleep(SCHEMA_LOCK_POLL_MS);
  }
  throw new StartupError(
    `Another process has been migrating this database for over ${SCHEMA_LOCK_TIMEOUT_MS / 1000} s. Try again when it has finished.`,
  );
}
