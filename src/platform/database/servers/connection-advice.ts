import type pg from 'pg';
import { StartupError } from '../../errors/startup-error.js';

/** Messages of PgBouncer, which have the SQLSTATE of a protocol violation. */
const POOLER_IS_FULL = /^(query_wait_timeout|no more connections allowed|client connections exceeded)/;

/** Matches codes and messages of pg and Node for servers without TLS, and for certificates that are not trusted. */
const TLS_FAULT = /SSL|TLS|CERT|SIGNATURE|ISSUER/i;

/** An error of Node, which has a string code, a path and a system call, or of pg, which has an SQLSTATE as its code. */
type ConnectionError = NodeJS.ErrnoException;

/**
 * Why a connection to the primary has failed, and what the operator can do about it. Never quotes the URI, which contains
 * the password.
 *
 * @param client the client that failed; undefined if pg could not make one from the URI
 * @param timeoutMs the time that the server had to answer, in ms
 */
export function connectionAdvice(
  error: ConnectionError,
  client: pg.Client | undefined,
  timeoutMs: number,
  passwordFile: string | undefined,
): string {
  if (error instanceof StartupError) return error.message;
  // A socket of PostgreSQL has a path, too.
  if (client === undefined || (error.path !== undefined && error.syscall !== 'connect')) {
    return uriAdvice(error, passwordFile);
  }
  const host = client.host.startsWith('/') ? `socket ${client.host}` : `${client.host}:${client.port}`;
  return codeAdvice(error.code, client, host) ?? messageAdvice(error, host, timeoutMs);
}

/** The same for a URI that pg cannot use: it is not valid, or a file that it names cannot be read. */
export function uriAdvice({ path, code }: ConnectionError, passwordFile?: string): string {
  // pg's error would quote the URI.
  if (path === undefined) return 'this is no PostgreSQL URI that can be used. Correct it.';
  // Other files are sslrootcert, sslcert and sslkey of the URI.
  const kind = path === passwordFile ? 'file of DATABASE_PASSWORD_FILE,' : 'certificate file';
  return `its ${kind} '${path}' cannot be read (${code}). Correct its path or rights.`;
}

function codeAdvice(code: string | undefined, client: pg.Client, host: string): string | undefined {
  const { user, database } = client;
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `nothing answers at ${host}. Start PostgreSQL there, or correct host and port.`;
    case 'ENOTFOUND':
      return `the host '${client.host}' is not known. Correct it.`;
    case 'EAI_AGAIN':
      return `the host '${client.host}' cannot be resolved at the moment. Correct it, or try again.`;
    case '28P01':
    case '28000':
      return `PostgreSQL at ${host} refuses user '${user}'. Correct user and password, or allow them in pg_hba.conf.`;
    case '3D000':
      return `PostgreSQL at ${host} has no database '${database}'. Create it (createdb ${database}), or correct the name.`;
    default:
      return undefined;
  }
}

/** For errors whose code says too little. */
function messageAdvice({ code, message }: ConnectionError, host: string, timeoutMs: number): string {
  if (POOLER_IS_FULL.test(message)) {
    return (
      `the pooler at ${host} has no room for another connection (${firstLine(message)}). Raise its ` +
      'max_client_conn and default_pool_size, or lower DATABASE_POOL_SIZE.'
    );
  }
  if (/time-?out/i.test(message)) {
    return `PostgreSQL at ${host} does not answer within ${timeoutMs} ms. Correct host and port, or let it through.`;
  }
  if (message === 'Connection terminated unexpectedly') {
    return `what answers at ${host} is not PostgreSQL. Correct host and port.`;
  }
  if (TLS_FAULT.test(`${code} ${message}`)) {
    return `PostgreSQL at ${host} cannot be used over TLS: ${firstLine(message)}. Correct sslmode and certificates.`;
  }
  const reason = firstLine(message || code || 'no reason given');
  return `PostgreSQL at ${host} cannot be used: ${reason}. Mend that, or set another database.`;
}

function firstLine(text: string): string {
  return text.split('\n')[0] as string;
}
