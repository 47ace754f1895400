import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import type { EMBEDDED_SETTINGS } from '#embedded-postgres';
import { type Config, flag, integer, limit, milliseconds, optional, type SettingsOf } from '#settings';
import type { ServicePoolOptions, SessionFacts } from './connections/service-pool.js';
import { UnusableDatabase } from './connections/connection-errors.js';
import { parseDatabaseUri, POSTGRESQL_URI } from './database-uri.js';
import { destroySocket } from './pg-connection.internals.js';
import { executeQuery } from './statements.js';

export const DATABASE_SETTINGS = {
  databaseUrl: {
    ...optional(
      'DATABASE_URL',
      POSTGRESQL_URI,
      'PostgreSQL 15 to 18. Not set: an embedded PostgreSQL in this process, for one machine and one process.',
      parseDatabaseUri,
    ),
    neverEmpty: true as const,
  },
  databaseDirectUrl: {
    ...optional(
      'DATABASE_DIRECT_URL',
      POSTGRESQL_URI,
      'Set it if DATABASE_URL leads through a pooler in transaction mode: a URI of the same database that bypasses the pooler. ' +
        'Migrations and commands use it.',
      parseDatabaseUri,
    ),
    needs: 'DATABASE_URL',
  },
};

export const POOL_SETTINGS = {
  databasePoolSize: integer(
    'DATABASE_POOL_SIZE',
    10,
    [1, 1_000],
    'Largest number of pooled connections. The service opens at most one more.',
  ),
  /**
   * Longest wait in ms for a connection of the pool. Longer than the 2 s for which a migration waits for a lock, behind which
   * every read of the table queues.
   */
  acquireTimeoutMs: limit(5_000),
  /** Age in ms at which a pooled connection is replaced, so that an old server or password goes out of use. */
  databaseConnectionMaxAgeMs: limit(1_800_000),
};

export const STATEMENT_SETTINGS = {
  /** Undefined if it is not set: then only the embedded PostgreSQL is migrated. */
  migrateOnStart: flag(
    'MIGRATE_ON_START',
    ['true', 'false'],
    undefined,
    'true: the start applies pending migrations; the default for the embedded PostgreSQL. false: the start fails on an ' +
      'outdated schema; the default with DATABASE_URL. Then run the command `migrate` once, before the instances start.',
  ),
  statementTimeoutMs: milliseconds(
    'STATEMENT_TIMEOUT_MS',
    5_000,
    'PostgreSQL cancels a statement after this time in ms, and the request gets 500 `took_too_long`.',
  ),
  /** Longest wait of a start in ms for a database that is away. Shorter than the startup probe of `ops/kubernetes`. */
  startTimeoutMs: limit(120_000),
};

/** The settings of this library. */
export type PostgresConfig = Pick<Config, 'product'> &
  SettingsOf<typeof DATABASE_SETTINGS & typeof EMBEDDED_SETTINGS & typeof POOL_SETTINGS & typeof STATEMENT_SETTINGS>;

/** The settings for statements that need a session of their own: `databaseUrl` is DATABASE_DIRECT_URL if that is set. */
export function directly<Own extends PostgresConfig>(config: Own): Own {
  const { databaseDirectUrl, databaseUrl, databasePoolSize } = config;
  // A second connection can end what the first one runs.
  return { ...config, databaseUrl: databaseDirectUrl ?? databaseUrl, databasePoolSize: Math.max(databasePoolSize, 2) };
}

/** Whether each connection of `databaseUrl` has a session of its own, as far as the settings tell. */
export function isDirect({ databaseUrl, databaseDirectUrl }: PostgresConfig): boolean {
  return databaseDirectUrl === undefined || databaseDirectUrl === databaseUrl;
}

/** Time in ms after which the pool closes an unused connection, and PostgreSQL one that left a transaction open. */
const IDLE_TIMEOUT_MS = 60_000;

/** Time in ms that we wait beyond `statement_timeout`. Then PostgreSQL may be unreachable, and the connection is closed. */
export const ANSWER_GRACE_MS = 1_000;

/**
 * Settings of every pooled connection to a PostgreSQL server. A statement sets the limits of each new connection, because poolers
 * refuse or ignore start-up parameters. A pooler without a free session accepts the connection, and that statement waits for one, no
 * longer than `timeoutMs`. `jit` stays on, so our statements must have low cost estimates, for which PostgreSQL does not compile them.
 */
export function serverConnectionSettings(config: PostgresConfig): ServicePoolOptions {
  const timeoutMs = config.acquireTimeoutMs;
  const limits = {
    statement_timeout: config.statementTimeoutMs,
    idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
    // `statement_timeout` bounds the wait for a lock, and the pool closes unused connections.
    lock_timeout: 0,
    idle_session_timeout: 0,
  };
  const late = `timeout exceeded: no session of PostgreSQL within ${timeoutMs} ms`;
  // Commands do not wait for the database. Those that need a session of their own refuse by themselves.
  let isTold = config.startTimeoutMs === 0;
  return {
    connectionString: config.databaseUrl,
    max: config.databasePoolSize,
    connectionTimeoutMillis: timeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    application_name: config.product.name,
    maxLifetimeSeconds: config.databaseConnectionMaxAgeMs / 1_000,
    onConnect: async (client: ClientBase): Promise<SessionFacts> => {
      const timer = setTimeout(() => destroySocket(client, new Error(late)), timeoutMs);
      const facts = await prepareSession(client, isDirect(config), limits).finally(() => clearTimeout(timer));
      if (facts.isShared && !isTold) new Logger('Database').warn(SHARED);
      isTold ||= facts.isShared;
      return facts;
    },
  };
}

/**
 * Settings without which pg sends or reads other values than modules expect: its parsers take a date that is not of DateStyle ISO
 * for null, it decodes UTF-8, and it writes null into an array as NULL. ISO leaves the order of day and month as it is.
 */
const WANTED = { datestyle: 'ISO', client_encoding: 'UTF8', array_nulls: 'on' };

/** A setting that nobody reads: a new connection that finds it set has the session of an earlier one. */
const MARK = 'service.session';

const SHARED =
  'DATABASE_URL leads through a pooler in transaction mode, which lets clients share sessions: set DATABASE_DIRECT_URL to a URI ' +
  'that bypasses it. Until then statements may fail, and time limits reach other clients of the pooler.';

/**
 * Prepares a new session, in one statement. One of its own gets the settings of WANTED and `limits`. In one that a pooler shares,
 * where a setting would reach other clients, those of WANTED must be in force already.
 *
 * @param limits settings of PostgreSQL in ms
 * @throws UnusableDatabase when a setting of a shared session is another, or the encoding of the database is not UTF8
 */
export async function prepareSession(
  client: ClientBase,
  isOwnSession: boolean,
  limits: Readonly<Record<string, number>> = {},
): Promise<SessionFacts> {
  const wanted = Object.entries(WANTED);
  const set = ([name, value]: [string, string | number]): string => `set_config('${name}', '${value}', false)`;
  const settings = isOwnSession ? wanted.map(set) : wanted.map(([name]) => `current_setting('${name}')`);
  const mark = `current_setting('${MARK}', true)`;
  const citus = `EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')`;
  const columns = ['current_database()::text', `current_setting('server_encoding')`, mark, citus, ...settings];
  const own = isOwnSession ? [...Object.entries(limits), [MARK, 'set'] as [string, string]].map(set) : [];
  const text = `SELECT ${[...columns, ...own].join()}`;
  type Row = [string, string, string | null, boolean, ...string[]];
  const [row] = await executeQuery<Row>(client, { name: '', text }, []);
  const [database, encoding, marked, isDistributed, ...values] = row as Row;
  if (encoding !== 'UTF8') {
    throw new UnusableDatabase(
      `the database '${database}' has the encoding ${encoding}, which cannot store every text. ` +
        `Make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and move the data by pg_dump and psql.`,
    );
  }
  for (const [index, [name, value]] of wanted.entries()) {
    // Of DateStyle, what follows the comma is the order.
    if (values[index]?.split(',')[0] === value) continue;
    throw new UnusableDatabase(
      `${name} is '${values[index]}', and the sessions of a pooler cannot be set one by one. ` +
        `Set it by ALTER ROLE … IN DATABASE ${database} SET ${name} TO '${value}', and let the pooler reconnect.`,
    );
  }
  return { isShared: isOwnSession && marked !== null && marked !== '', isDistributed };
}
