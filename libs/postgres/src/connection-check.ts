import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { StartupError } from '#runtime';
import { directly, isDirect, type PostgresConfig, prepareSession } from './connection-settings.js';
import { UnusableDatabase } from './connections/connection-errors.js';
import { hangUp } from './pg-connection.internals.js';

const RETRY_MS = 500;

/** Failures that end by themselves: no response, a broken connection, PostgreSQL starts, stops or is full. */
const AWAY_CODES = /^(E(CONN|TIMEDOUT|HOST|NET|AI_AGAIN|PIPE)|ENOTFOUND$|ENOENT$|57P0|53300$)/;
const AWAY_MESSAGES = /^(Connection terminated|timeout expired|Query read timeout)/;

/** By the code of Node or PostgreSQL. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Start PostgreSQL there, or correct host and port.',
  ENOENT: 'Start PostgreSQL there, or correct the directory of its socket.',
  '28P01': 'Correct user and password.',
  '28000': 'Correct user and password, or allow them in pg_hba.conf.',
  '3D000': 'Create the database, or correct its name.',
};
const DEFAULT_ADVICE = 'Correct host, port, user, password, sslmode or certificates, or mend the server.';

class DatabaseAway extends StartupError {}

/**
 * Connects to the database, and prepares a session: an error of the pool would not name the wrong setting. Waits for an unreachable
 * database, such as during a failover, and prints the reason on standard error.
 *
 * @throws StartupError when the database refuses, or is unreachable for `startTimeoutMs`. It never contains the URI: that
 * has the password
 */
export async function checkConnection(config: PostgresConfig): Promise<void> {
  const { databaseUrl, product, startTimeoutMs } = config;
  if (databaseUrl === undefined) return;
  const deadline = performance.now() + startTimeoutMs;
  for (let isTold = false; ; await sleep(RETRY_MS)) {
    try {
      await check(databaseUrl, config);
      break;
    } catch (error) {
      if (!(error instanceof DatabaseAway) || performance.now() >= deadline) throw error;
      const wait = `The start waits for at most ${startTimeoutMs / 1_000} s.`;
      if (!isTold) process.stderr.write(`${product.name}: ${error.message} ${wait}\n`);
      isTold = true;
    }
  }
  if (!isDirect(config)) await checkConnection(directly(config));
}

async function check(url: string, config: PostgresConfig): Promise<void> {
  const { acquireTimeoutMs, databaseDirectUrl, product } = config;
  const setting = url === databaseDirectUrl ? 'DATABASE_DIRECT_URL' : 'DATABASE_URL';
  let client: pg.Client | undefined;
  try {
    client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: acquireTimeoutMs,
      query_timeout: acquireTimeoutMs,
      application_name: product.name,
    });
    // An 'error' event without a listener would end the process; `connect` rejects with the same error.
    client.on('error', () => undefined);
    await client.connect();
    await prepareSession(client, isDirect(config));
  } catch (caught) {
    const error = caught as NodeJS.ErrnoException;
    const isAway = (!isOfFile(error) && AWAY_CODES.test(error.code ?? '')) || AWAY_MESSAGES.test(error.message);
    throw new (isAway ? DatabaseAway : StartupError)(`${setting}: ${connectionAdvice(error, client)}`);
  } finally {
    hangUp(client);
  }
}

/** Whether the file of a certificate cannot be read. A socket of PostgreSQL has a path, too. */
function isOfFile({ path, syscall }: NodeJS.ErrnoException): boolean {
  return path !== undefined && syscall !== 'connect';
}

/** Why a connection has failed, and what the operator can do about it. Never quotes the URI, which contains the password. */
function connectionAdvice(error: NodeJS.ErrnoException, client: pg.Client | undefined): string {
  if (isOfFile(error)) {
    return `its file '${error.path}' cannot be read (${error.code}). Correct its path or rights.`;
  }
  if (error instanceof UnusableDatabase) return error.message;
  const reason = (error.message || error.code || 'no reason given').split('\n')[0] as string;
  if (client === undefined) return `it cannot be used: ${reason}. Correct its parameters.`;
  const place = client.host.startsWith('/') ? `socket ${client.host}` : `${client.host}:${client.port}`;
  return `PostgreSQL at ${place} cannot be used: ${reason}. ${ADVICE[error.code ?? ''] ?? DEFAULT_ADVICE}`;
}
