import type { ClientBase, PoolConfig } from 'pg';
import { destroySocket } from '#internals';
import { product, type Config } from '#settings';
import type { ServicePoolOptions } from './connections/service-pool.js';

/** The settings for statements that need a session of their own: `databaseUrl` is DATABASE_DIRECT_URL if that is set. */
export function directly(config: Config): Config {
  return { ...config, databaseUrl: config.databaseDirectUrl ?? config.databaseUrl };
}

/** Whether each connection of `databaseUrl` has a session of its own, as far as the settings tell. */
export function isDirect({ databaseUrl, databaseDirectUrl }: Config): boolean {
  return databaseDirectUrl === undefined || databaseDirectUrl === databaseUrl;
}

/** Time in ms after which the pool closes an unused connection, and PostgreSQL one that left a transaction open. */
const IDLE_TIMEOUT_MS = 60_000;

/**
 * Time in ms that we wait beyond `statement_timeout`. If PostgreSQL has not cancelled the statement within this time, it may
 * be unreachable.
 */
const ANSWER_GRACE_MS = 1_000;

/**
 * Settings of every pooled connection to a PostgreSQL server, primary or replica.
 *
 * The limits of each new connection are set by a statement, because poolers refuse or ignore start-up parameters. Other settings
 * of PostgreSQL keep the server's values for our role and database. One of them is `jit`: it stays on, so statements must have
 * low cost estimates, for which PostgreSQL does not compile them.
 *
 * A pooler without a free session accepts the connection, and its first statement waits. So requests wait for a saturated
 * pooler in `onConnect`, no longer than `timeoutMs`.
 *
 * @param isOwnSession false behind a pooler in transaction mode, where a setting would reach another session
 * @param limits further settings of a session, in ms
 * @param timeoutMs longest time in ms to connect, and again to prepare the session
 */
export function serverConnectionSettings(
  config: Config,
  uri: string,
  isOwnSession = true,
  limits: Readonly<Record<string, number>> = {},
  timeoutMs = config.acquireTimeoutMs,
): ServicePoolOptions {
  const { statementTimeoutMs } = config;
  const all = {
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
    ...limits,
  };
  const sets = Object.entries(all).map(([name, ms]) => `set_config('${name}', '${ms}', false)`);
  const late = `timeout exceeded: no session of PostgreSQL within ${timeoutMs} ms`;
  return {
    connectionString: uri,
    max: config.databasePoolSize,
    connectionTimeoutMillis: timeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    application_name: product().name,
    maxLifetimeSeconds: config.databaseConnectionMaxAgeMs / 1_000,
    onConnect: async (client: ClientBase): Promise<void> => {
      const timer = setTimeout(() => destroySocket(client, new Error(late)), timeoutMs);
      await client.query(`SELECT ${isOwnSession ? sets.join() : ''}`).finally(() => clearTimeout(timer));
    },
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

/** Longest time in ms to wait for the response to a statement. After that the connection is closed. */
export function answerTimeoutMs({ statementTimeoutMs }: Pick<Config, 'statementTimeoutMs'>): number {
  return statementTimeoutMs + ANSWER_GRACE_MS;
}
