import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Config } from '../../config.js';
import { hostUris } from '../../settings/database-uris.js';
import { StartupError } from '../errors/startup-error.js';
import { APPLICATION_NAME, IDLE_TIMEOUT_MS } from './connection-settings.js';
import { NoPrimaryError } from './connections/connection-errors.js';
import { checkTransactionMode, detectPooling, type Pooling } from './servers/pooling.js';
import { type ServerAddress, ServerClient, serverAddress } from './servers/server-client.js';

/** The settings that hold a URI of the primary. */
export type PrimarySetting = 'DATABASE_URL' | 'DATABASE_DIRECT_URL';

/**
 * Connects to the primary, and finds out whether the connection leads through a pooler. Without this check a start would
 * fail with an error of the pool, which does not name the wrong setting. Replicas are not checked, because the service must
 * start without them.
 *
 * @param setting the setting from which `config.databaseUrl` was taken
 * @throws StartupError that names the setting and what to do, and never the URI: it contains the password
 */
export async function checkConnection(config: Config, setting: PrimarySetting = 'DATABASE_URL'): Promise<Pooling> {
  const { databaseUrl, databaseDirectUrl, databaseReplicaUrls } = config;
  if (databaseUrl === undefined) return 'none';
  databaseReplicaUrls.forEach(checkReplicaUrl);
  const pooling = await checkPrimary(setting, databaseUrl, config);
  if (pooling === 'transaction' && databaseDirectUrl === undefined) {
    const problem = `${setting} leads through a pooler in transaction mode, where LISTEN and migrations do not work.`;
    throw new StartupError(
      setting === 'DATABASE_URL'
        ? `${problem} Set DATABASE_DIRECT_URL to PostgreSQL itself, too.`
        : `${problem} It must lead to PostgreSQL itself.`,
    );
  }
  if (databaseDirectUrl !== undefined) await checkConnection(directly(config), 'DATABASE_DIRECT_URL');
  return pooling;
}

/** The settings for statements that need a session of their own: `databaseUrl` is DATABASE_DIRECT_URL if that is set. */
export function directly(config: Config): Config {
  const { databaseDirectUrl } = config;
  if (databaseDirectUrl === undefined) return config;
  return { ...config, databaseUrl: databaseDirectUrl, databaseDirectUrl: undefined };
}

/** The setting that `directly` takes its URI from. */
export function directSetting({ databaseDirectUrl }: Config): PrimarySetting {
  return databaseDirectUrl === undefined ? 'DATABASE_URL' : 'DATABASE_DIRECT_URL';
}

function checkReplicaUrl(connectionString: string): void {
  try {
    new pg.Client({ connectionString });
  } catch (error) {
    throw new StartupError(`DATABASE_REPLICA_URLS: ${explain(error as Error, undefined, 0)}`);
  }
}

async function checkPrimary(setting: PrimarySetting, url: string, config: Config): Promise<Pooling> {
  const { databasePasswordFile, acquireTimeoutMs, statementTimeoutMs } = config;
  const clients: ServerClient[] = [];
  let address: ServerAddress;
  const connect = async (): Promise<ServerClient> => {
    const client = new ServerClient({
      ...address,
      connectionTimeoutMillis: acquireTimeoutMs,
      query_timeout: acquireTimeoutMs,
      application_name: APPLICATION_NAME,
    });
    clients.push(client);
    // An 'error' event without a listener would end the process; `connect` rejects with the same error.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  try {
    address = serverAddress(hostUris(url), databasePasswordFile);
    const first = await connect();
    const pooling = await detectPooling(first, connect);
    if (pooling === 'transaction') {
      await checkTransactionMode([first, clients[1] as ServerClient], {
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
      });
    }
    return pooling;
  } catch (error) {
    throw new StartupError(
      `${setting}: ${explain(error as Error & { code?: string }, clients[0], acquireTimeoutMs, databasePasswordFile)}`,
    );
  } finally {
    // Waits no longer than for a connection: a full pooler may not answer.
    await Promise.race([
      Promise.all(clients.map((client) => client.end().catch(() => undefined))),
      sleep(acquireTimeoutMs, undefined, { ref: false }),
    ]);
  }
}

/** Messages of PgBouncer, which have the SQLSTATE of a protocol violation. */
const POOLER_IS_FULL = /^(query_wait_timeout|no more connections allowed|client connections exceeded)/;

/** Matches codes and messages of pg and Node for servers without TLS, and for certificates that are not trusted. */
const TLS_FAULT = /SSL|TLS|CERT|SIGNATURE|ISSUER/i;

function firstLine(text: string): string {
  return text.split('\n')[0] as string;
}

/** What is wrong and what to do about it. `client` is undefined when `pg` cannot parse the URI. */
function explain(
  error: Error & { code?: string },
  client: pg.Client | undefined,
  timeoutMs: number,
  passwordFile?: string,
): string {
  if (error instanceof StartupError) return error.message;
  const { path, syscall } = error as NodeJS.ErrnoException;
  // DATABASE_PASSWORD_FILE, or sslrootcert, sslcert or sslkey of the URI. A socket has a path, too.
  if (path !== undefined && syscall !== 'connect') {
    const kind = path === passwordFile ? 'file of DATABASE_PASSWORD_FILE,' : 'certificate file';
    return `its ${kind} '${path}' cannot be read (${error.code}). Correct its path or rights.`;
  }
  // pg's error would quote the URI, and with it the password.
  if (client === undefined) return 'this is no PostgreSQL URI that can be used. Correct it.';
  if (error instanceof NoPrimaryError) {
    return `${firstLine(error.message)}. Start or promote one of them, or correct the hosts.`;
  }
  const { user, database, port } = client;
  const host = client.host.startsWith('/') ? `socket ${client.host}` : `${client.host}:${port}`;
  const logIn = `PostgreSQL at ${host} refuses user '${user}'. Correct user and password, or allow them in pg_hba.conf.`;
  const known: Record<string, string> = {
    ECONNREFUSED: `nothing answers at ${host}. Start PostgreSQL there, or correct host and port.`,
    ENOENT: `nothing answers at ${host}. Start PostgreSQL there, or correct host and port.`,
    ENOTFOUND: `the host '${client.host}' is not known. Correct it.`,
    EAI_AGAIN: `the host '${client.host}' cannot be resolved at the moment. Correct it, or try again.`,
    '28P01': logIn,
    '28000': logIn,
    '3D000': `PostgreSQL at ${host} has no database '${database}'. Create it (createdb ${database}), or correct the name.`,
  };
  const answer = known[error.code ?? ''];
  if (answer !== undefined) return answer;
  if (POOLER_IS_FULL.test(error.message)) {
    return (
      `the pooler at ${host} has no room for another connection (${firstLine(error.message)}). Raise its ` +
      'max_client_conn and default_pool_size, or lower DATABASE_POOL_SIZE.'
    );
  }
  if (/time-?out/i.test(error.message)) {
    return `PostgreSQL at ${host} does not answer within ${timeoutMs} ms. Correct host and port, or let it through.`;
  }
  if (error.message === 'Connection terminated unexpectedly') {
    return `what answers at ${host} is not PostgreSQL. Correct host and port.`;
  }
  if (TLS_FAULT.test(`${error.code} ${error.message}`)) {
    return `PostgreSQL at ${host} cannot be used over TLS: ${firstLine(error.message)}. Correct sslmode and certificates.`;
  }
  const reason = firstLine(error.message || error.code || 'no reason given');
  return `PostgreSQL at ${host} cannot be used: ${reason}. Mend that, or set another database.`;
}
