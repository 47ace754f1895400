import type pg from 'pg';
import { StartupError } from '../../errors/startup-error.js';

/** An error of Node, which has a string code, a path and a system call, or of pg, which has an SQLSTATE as its code. */
type ConnectionError = NodeJS.ErrnoException;

/**
 * Why a connection to the primary has failed, and what the operator can do about it. Never quotes the URI, which contains
 * the password.
 *
 * @param client the client that failed; undefined if pg could not make one from the URI
 */
export function connectionAdvice(error: ConnectionError, client: pg.Client | undefined): string {
  if (error instanceof StartupError) return error.message;
  // A socket of PostgreSQL has a path, too.
  if (client === undefined || (error.path !== undefined && error.syscall !== 'connect')) return uriAdvice(error);
  const { user, database } = client;
  const host = client.host.startsWith('/') ? `socket ${client.host}` : `${client.host}:${client.port}`;
  switch (error.code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return `nothing answers at ${host}. Start PostgreSQL there, or correct host and port.`;
    case '28P01':
    case '28000':
      return `PostgreSQL at ${host} refuses user '${user}'. Correct user and password, or allow them in pg_hba.conf.`;
    case '3D000':
      return `PostgreSQL at ${host} has no database '${database}'. Create it (createdb ${database}), or correct the name.`;
  }
  const reason = (error.message || error.code || 'no reason given').split('\n')[0];
  return `PostgreSQL at ${host} cannot be used: ${reason}. Correct host, port, sslmode or certificates, or mend the server.`;
}

/** The same for a URI that pg cannot use: it is not valid, or a file that it or DATABASE_PASSWORD_FILE names cannot be read. */
export function uriAdvice({ path, code }: ConnectionError): string {
  // pg's error would quote the URI.
  if (path === undefined) return 'this is no PostgreSQL URI that can be used. Correct it.';
  return `its file '${path}' cannot be read (${code}). Correct its path or rights.`;
}
