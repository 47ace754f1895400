import type { PoolConfig } from 'pg';
import type { Config } from '../../config.js';

/** The name of our connections in PostgreSQL's `pg_stat_activity`. */
export const APPLICATION_NAME = 'petstore';

/** Time in ms after which the pool closes an unused connection, and PostgreSQL one that left a transaction open. */
const IDLE_TIMEOUT_MS = 60_000;

/** Time in ms that we wait beyond `statement_timeout`. If PostgreSQL has not cancelled the statement by then, it may be unreachable. */
const ANSWER_GRACE_MS = 1_000;

/**
 * Settings of every pooled connection to a PostgreSQL server, primary or replica. `pg` sends those in snake_case to
 * PostgreSQL when it opens a connection; it observes the others itself.
 *
 * A setting that is not sent keeps the value that the server has for our role and database. JIT is such a one: statements
 * must be estimated so low that PostgreSQL does not use it. `pg` knows only a few of PostgreSQL's settings by name;
 * another one would go into `options`, as `'-c work_mem=8MB'`.
 */
export function serverConnectionSettings(config: Config): PoolConfig {
  return {
    max: config.databasePoolSize,
    connectionTimeoutMillis: config.acquireTimeoutMs,
    statement_timeout: config.statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    application_name: APPLICATION_NAME,
  };
}

/**
 * Settings of the one connection to the embedded engine, which has one session. The connection stays open while it is
 * idle, because the engine would reset its session for the next one. No time limit applies to its statements.
 */
export function embeddedConnectionSettings(config: Config): PoolConfig {
  return {
    max: 1,
    connectionTimeoutMillis: config.acquireTimeoutMs,
    idleTimeoutMillis: 0,
    user: 'postgres',
    database: 'postgres',
    // Never looked up: the connection's `stream` leads to the engine.
    host: 'embedded',
    ssl: false,
  };
}

/** Time in ms that we wait for the answer to a statement. The connection is then closed. */
export function answerTimeoutMs(config: Config): number {
  return config.statementTimeoutMs + ANSWER_GRACE_MS;
}
