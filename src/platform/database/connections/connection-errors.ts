import type { ApiError } from '../../errors/api-error.js';
import { serviceUnavailable, type UnavailableCause } from '../../errors/service-unavailable.js';

/** Node error codes of sockets, DNS and TLS, and system calls. */
const NETWORK_ERRORS = new Set(['EPIPE', 'EPROTO', 'ENOTFOUND', 'EAI_AGAIN']);
const SOCKET_CALLS = new Set(['connect', 'read', 'write', 'shutdown', 'getaddrinfo']);
const TLS_ERROR = /^ERR_(SSL|TLS|STREAM)_/;

/**
 * SQLSTATE classes and codes that are not about the statement: connection exceptions, refused log-ins, unknown database,
 * exhausted resources, system errors; and: the server shuts down, starts, cancels, ends a transaction that was left open, or
 * is a standby (PostgreSQL, appendix A).
 */
const SQLSTATES = /^(08...|28...|3D000|53...|58...|57P0[1-5]|57014|25006|25P0[34])$/;

/** The subset of SQLSTATES with which PostgreSQL refuses one statement. The statement has had no effect. */
const REFUSALS = /^(53...|58...|57014|25006)$/;

/** Messages of PgBouncer when it has no session for a client. It has sent nothing to PostgreSQL. */
const POOLER_REFUSALS =
  /^(query_wait_timeout|no more connections allowed|client connections exceeded|pgbouncer cannot)/;

/** SQLSTATE of a prepared statement whose columns have changed, if this function of PostgreSQL raises it. */
const FEATURE_NOT_SUPPORTED = '0A000';
const PLAN_CHECK = 'RevalidateCachedQuery';

/**
 * SQLSTATEs of a prepared statement that does not exist, of a name that another client of the pooler has prepared, and of
 * parameters that have other types than their columns: undefined object, mismatched types, no cast, undefined function or
 * operator. For a dropped type, only the message tells.
 */
const STALE = new Set<unknown>(['26000', '42P05', '42704', '42804', '42846', '42883']);
const DROPPED_TYPE = /^cache lookup failed for type /;

/** Messages of pg's errors that have no code. */
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

/** The file of a password or certificate that a new connection needs cannot be read. */
export class ConnectionFileError extends Error {
  readonly code: string | undefined;
  readonly path: string | undefined;

  /** @param error the error of the file system */
  constructor(error: NodeJS.ErrnoException) {
    super(error.message, { cause: error });
    this.code = error.code;
    this.path = error.path;
  }
}

interface DatabaseFailure extends Error {
  readonly code?: unknown;
  readonly syscall?: unknown;
  /** The function of PostgreSQL that raised the error. */
  readonly routine?: unknown;
  /** The pg error that a TypeORM error wraps. */
  readonly driverError?: unknown;
}

/**
 * Whether an error of pg or TypeORM means that the database is unreachable, overloaded or read-only. The connection should be
 * closed.
 */
export function isConnectionFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (error instanceof ConnectionFileError) return true;
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

/**
 * Whether a prepared statement may have failed before its execution because its preparation on the connection is stale: a
 * column has another type, or `DEALLOCATE` or `DISCARD` has dropped it. The statement has had no effect. If this is the
 * cause, it works when it is parsed anew.
 */
export function mayBeStale(error: unknown): boolean {
  const { code, routine, message } = error as DatabaseFailure;
  return (
    STALE.has(code) ||
    (code === FEATURE_NOT_SUPPORTED && routine === PLAN_CHECK) ||
    (code === 'XX000' && DROPPED_TYPE.test(message))
  );
}

/** The database is closed to connections (ALLOW_CONNECTIONS false). The code alone has other meanings too. */
function isClosedDatabase(code: string, message: string): boolean {
  return code === '55000' && message.includes('not currently accepting connections');
}

/** Whether PostgreSQL or a pooler refused the statement, so that it had no effect. */
function isRefusal(error: unknown): boolean {
  const { driverError, code, message } = error as DatabaseFailure;
  if (driverError !== undefined) return isRefusal(driverError);
  return (typeof code === 'string' && REFUSALS.test(code)) || POOLER_REFUSALS.test(message);
}

/**
 * The error to throw: ApiError UNAVAILABLE with the original as `cause` for a connection failure, else the original.
 *
 * @param isSentChange whether PostgreSQL may have received a change; if so, and unless it refused the statement, the message
 *   says that the outcome is unknown
 */
export function asUnavailable(error: unknown, isSentChange = false): unknown {
  if (!isConnectionFailure(error)) return error;
  return isSentChange && !isRefusal(error) ? outcomeUnknown(error) : unavailable(error);
}

/** The error while the database is unreachable and nothing was changed. */
export function unavailable(cause: Error): ApiError {
  return serviceUnavailable(causeOf(cause), 'The database is not available. Try again.', { cause });
}

function outcomeUnknown(cause: Error): ApiError {
  return serviceUnavailable(
    causeOf(cause),
    'The database did not confirm the change in time; it may have been made. ' +
      'A retry with the same Idempotency-Key settles it; without one, look whether it was made before you try again.',
    { cause },
  );
}

/** The cause for operators: slow statements, a busy pool, a refusal by PostgreSQL, or an unreachable database. */
function causeOf(error: Error): UnavailableCause {
  const { driverError, code, message } = error as DatabaseFailure;
  if (driverError instanceof Error) return causeOf(driverError);
  if (code === '57014' || message === 'Query read timeout') return 'database_slow';
  // pg-pool's message when all connections of the pool are busy.
  if (message === 'timeout exceeded when trying to connect') return 'database_busy';
  return typeof code === 'string' && REFUSALS.test(code) ? 'database_refused' : 'database_away';
}

/** The error of a request when too many others already wait for the database. */
export function tooManyWaiting(): ApiError {
  return serviceUnavailable('database_busy');
}

/** The error of a request that has waited too long for the database. No statement was sent for it. */
export function waitedTooLong(): ApiError {
  return serviceUnavailable('database_busy', 'The service did not get to the request in time. Try again.');
}
