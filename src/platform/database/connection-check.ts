import pg from 'pg';
import type { Config } from '../../config.js';
import { StartupError } from '../errors/startup-error.js';
import { APPLICATION_NAME } from './connection-settings.js';

/**
 * Connects once to the primary. Without it a start would fail with an error of the pool, which does not say which setting
 * is wrong. Replicas are not connected to, because the service must start without them.
 *
 * @throws StartupError that names the setting and what to do, and never the URI: it contains the password
 */
export async function checkConnection({ databaseUrl, databaseReplicaUrls, acquireTimeoutMs }: Config): Promise<void> {
  if (databaseUrl === undefined) return;
  databaseReplicaUrls.forEach(checkReplicaUrl);
  await connectOnce(databaseUrl, acquireTimeoutMs);
}

function checkReplicaUrl(connectionString: string): void {
  try {
    new pg.Client({ connectionString });
  } catch (error) {
    throw new StartupError(`DATABASE_REPLICA_URLS: ${explain(error as Error, undefined, 0)}`);
  }
}

async function connectOnce(url: string, timeoutMs: number): Promise<void> {
  let client: pg.Client | undefined;
  try {
    const options = { connectionString: url, connectionTimeoutMillis: timeoutMs, application_name: APPLICATION_NAME };
    client = new pg.Client(options);
    // An 'error' event without a listener would end the process; `connect` rejects with the same error.
    client.on('error', () => undefined);
    await client.connect();
  } catch (error) {
    throw new StartupError(`DATABASE_URL: ${explain(error as Error & { code?: string }, client, timeoutMs)}`);
  } finally {
    await client?.end().catch(() => undefined);
  }
}

/** Codes and messages of pg and Node for servers without TLS, and with certificates that are not trusted. */
const TLS_FAULT = /SSL|TLS|CERT|SIGNATURE|ISSUER/i;

function firstLine(text: string): string {
  return text.split('\n')[0] as string;
}

/** What is wrong and what to do about it. `client` is undefined when `pg` cannot parse the URI. */
function explain(error: Error & { code?: string }, client: pg.Client | undefined, timeoutMs: number): string {
  if (client === undefined) {
    const { code, path } = error as NodeJS.ErrnoException;
    // sslrootcert, sslcert or sslkey of the URI.
    if (path !== undefined)
      return `its certificate file '${path}' cannot be read (${code}). Correct its path or rights.`;
    // pg's error would quote the URI, and with it the password.
    return 'this is no PostgreSQL URI that can be used. Correct it.';
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
