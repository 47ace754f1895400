import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { StartupError } from '#runtime';
import { directly, isDirect, type PostgresConfig, prepareSession } from './connection-settings.js';
import { UnusableDatabase } from './connections/connection-errors.js';

const RETRY_MS = 500;

/** Failures that end by themselves: no response, a broken connection, PostgreSQL starts, stops or is full. */
const AWAY_CODES = /^(E(CONN|TIMEDOUT|HOST|NET|AI_AGAIN|PIPE)|ENOTFOUND$|ENOENT$|57P0|53300$)/;
const AWAY_MESSAGES = /^(Connection terminated|timeout expired|Query read timeout)/;

/** pg's message when PostgreSQL asks for a password by SCRAM, and there is none. */
const NO_PASSWORD = /client password must be a /;

class DatabaseAway extends StartupError {}

/**
 * Connects to the database, and prepares a session. Without this check a start would fail with an error of the pool, which does not
 * name the wrong setting.
 *
 * Waits for an unreachable database, such as during a failover, and prints the reason on standard error.
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
    // Waits no longer than for a connection: a full pooler may not respond.
    await Promise.race([client?.end().catch(() => undefined), sleep(acquireTimeoutMs, undefined, { ref: false })]);
  }
}

/** Whether the file of a certificate cannot be read. A socket of PostgreSQL has a path, too. */
function isOfFile({ path, syscall }: NodeJS.ErrnoException): boolean {
  return path !== undefined && syscall !== 'connect';
}

/**
 * Why a connection has failed, and what the operator can do about it. Never quotes the URI, which contains
 * the password.
 *
 * @param error one of Node, which has a string code, a path and a system call, or of pg, which has an SQLSTATE as its code
 */
function connectionAdvice(error: NodeJS.ErrnoException, client: pg.Client | undefined): string {
  if (isOfFile(error)) {
    return `its file '${error.path}' cannot be read (${error.code}). Correct its path or rights.`;
  }
  if (error instanceof UnusableDatabase) return error.message;
  const reason = (error.message || error.code || 'no reason given').split('\n')[0] as string;
  if (client === undefined) return `it cannot be used: ${reason}. Correct its parameters.`;
  const { user, database, password } = client;
  if (!user) {
    return 'it names no user. Add one to the URI (postgresql://user:password@host:5432/database), or set PGUSER.';
  }
  const host = client.host.startsWith('/') ? `socket ${client.host}` : `${client.host}:${client.port}`;
  // pg fails by itself at SCRAM; to PostgreSQL's other methods it sends an empty or wrong one.
  if (!password && (error.code === '28P01' || NO_PASSWORD.test(reason))) {
    return (
      `PostgreSQL at ${host} wants a password of user '${user}', and none is set. ` +
      'Add it to the URI (postgresql://user:password@host:5432/database), or set PGPASSWORD.'
    );
  }
  switch (error.code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `no server responds at ${host}. Start PostgreSQL there, or correct host and port.`;
    case '28P01':
    case '28000':
      return `PostgreSQL at ${host} refuses user '${user}' (${reason}). Correct user and password, or allow them in pg_hba.conf.`;
    case '3D000':
      return `PostgreSQL at ${host} has no database '${database}'. Create it (createdb ${database}), or correct the name.`;
  }
  if (error.code === 'ECONNRESET' || error.message.startsWith('Connection terminated')) {
    return `${host} closed the connection during log-in: is the database behind it up?`;
  }
  return `PostgreSQL at ${host} cannot be used: ${reason}. Correct host, port, sslmode or certificates, or mend the server.`;
}
