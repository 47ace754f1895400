import { ApiError } from '../../errors/api-error.js';
import { UNAVAILABLE } from '../../errors/error-catalogue.js';

/** Of the socket, of the look-up of its address, or of TLS: what Node says when PostgreSQL has said nothing. */
const NETWORK_ERRORS = new Set(['EPIPE', 'EPROTO', 'ENOTFOUND', 'EAI_AGAIN']);
const SOCKET_CALLS = new Set(['connect', 'read', 'write', 'shutdown', 'getaddrinfo']);
const TLS_ERROR = /^ERR_(SSL|TLS|STREAM)_/;

/**
 * SQLSTATE classes and codes that say nothing of the statement: connection exceptions, refused log-ins, no such
 * database, resources exhausted, errors of the machine below, and then: the server shuts down, starts, cancels, ends a
 * transaction that was left open, or has become a standby.
 */
const SQLSTATES = /^(08...|28...|3D000|53...|58...|57P0[1-5]|57014|25006|25P0[34])$/;

/** Those of them with which PostgreSQL refuses a statement and lives on, so that nothing of it was done. */
const REFUSALS = /^(53...|58...|57014|25006)$/;

/** What `pg` throws without a code. */
const MESSAGES = new RegExp(
  [
    '^Connection terminated',
    '^timeout e',
    '^Query read timeout$',
    '^Cannot use a pool after calling end',
    '^Client (has encountered a connection error|was closed) and is not queryable$',
    '^The server does not support SSL connections$',
    '^There was an error establishing an SSL connection$',
    '^Received unexpected .* message from backend',
  ].join('|'),
);

interface DatabaseFailure extends Error {
  readonly code?: unknown;
  readonly syscall?: unknown;
  /** The error of `pg` that an error of TypeORM is about. */
  readonly driverError?: unknown;
}

/**
 * Whether an error, of `pg` or of TypeORM, says that the database is away, overloaded or read-only, and nothing of the
 * statement.
 */
export function isConnectionFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { driverError, code, syscall } = error as DatabaseFailure;
  if (driverError !== undefined) return isConnectionFailure(driverError);
  if (typeof code !== 'string') return MESSAGES.test(error.message);
  return (
    (typeof syscall === 'string' && SOCKET_CALLS.has(syscall)) ||
    /^E(CONN|TIMEDOUT|HOST|NET)/.test(code) ||
    NETWORK_ERRORS.has(code) ||
    TLS_ERROR.test(code) ||
    SQLSTATES.test(code) ||
    isClosedDatabase(code, error.message)
  );
}

/** An administrator has closed the database to connections. The code alone can mean other things. */
function isClosedDatabase(code: string, message: string): boolean {
  return code === '55000' && message.includes('not currently accepting connections');
}

/** Whether PostgreSQL itself has refused the statement, so that nothing of it was done. */
function isRefusal(error: unknown): boolean {
  const { driverError, code } = error as DatabaseFailure;
  return driverError === undefined ? typeof code === 'string' && REFUSALS.test(code) : isRefusal(driverError);
}

/**
 * The error to throw on: ApiError UNAVAILABLE with the cause in it for a connection failure, else the same.
 *
 * @param isSentChange whether PostgreSQL may have received something to commit: then the answer says that its outcome is
 *   not known, unless PostgreSQL has said that nothing was done
 */
export function asUnavailable(error: unknown, isSentChange = false): unknown {
  if (!isConnectionFailure(error)) return error;
  return isSentChange && !isRefusal(error) ? outcomeUnknown(error) : unavailable(error);
}

/** What is said when the database is away, and nothing was changed. */
export function unavailable(cause: Error): ApiError {
  return new ApiError(UNAVAILABLE, 'The database is not available. Try again.', { 'Retry-After': '1' }, { cause });
}

function outcomeUnknown(cause: Error): ApiError {
  return new ApiError(
    UNAVAILABLE,
    'The database did not confirm the change in time; it may have been made. ' +
      'A retry with the same Idempotency-Key settles it; without one, look whether it was made before you try again.',
    { 'Retry-After': '1' },
    { cause },
  );
}
