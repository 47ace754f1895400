import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';

/** Of the socket, before PostgreSQL has said anything. */
const SOCKET_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/**
 * SQLSTATE classes and codes that say nothing of the statement: connection exceptions, refused log-ins, no such
 * database, resources exhausted, and then: the server shuts down, starts, cancels, or has become a standby.
 */
const SQLSTATES = /^(08...|28...|3D000|53...|57P0[1-5]|57014|25006)$/;

/** What `pg` throws without a code. */
const MESSAGES = new RegExp(
  [
    '^Connection terminated',
    '^timeout e',
    '^Query read timeout$',
    '^Cannot use a pool after calling end',
    '^Client (has encountered a connection error|was closed) and is not queryable$',
    '^The server does not support SSL connections$',
  ].join('|'),
);

/**
 * Whether an error, of `pg` or of TypeORM, says that the database is away, overloaded or read-only, and nothing of the
 * statement.
 */
export function isConnectionFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { driverError, code } = error as Error & { driverError?: unknown; code?: unknown };
  if (driverError !== undefined) return isConnectionFailure(driverError);
  if (typeof code !== 'string') return MESSAGES.test(error.message);
  return SOCKET_ERRORS.has(code) || SQLSTATES.test(code) || isClosedDatabase(code, error.message);
}

/** An administrator has closed the database to connections. The code alone can mean other things. */
function isClosedDatabase(code: string, message: string): boolean {
  return code === '55000' && message.includes('not currently accepting connections');
}

/** The error to throw on: ApiError UNAVAILABLE with the cause in it for a connection failure, else the same. */
export function asUnavailable(error: unknown): unknown {
  return isConnectionFailure(error)
    ? new ApiError(UNAVAILABLE, 'The database is not available. Try again.', { 'Retry-After': '1' }, { cause: error })
    : error;
}
