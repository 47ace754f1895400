import pg, { type DatabaseError } from 'pg';
import { QueryFailedError } from 'typeorm';
import { ApiError, serviceUnavailable, TOOK_TOO_LONG, type UnavailableCause } from '#errors';
import { StartupError } from '#runtime';

/** Node error codes of sockets, DNS and TLS, and system calls. */
const NETWORK_ERRORS = /^(E(CONN|TIMEDOUT|HOST|NET)|EPIPE$|EPROTO$|ENOTFOUND$|EAI_AGAIN$|ERR_(SSL|TLS|STREAM)_)/;
const SOCKET_CALLS = new Set(['connect', 'read', 'write', 'shutdown', 'getaddrinfo']);

/**
 * SQLSTATE classes and codes that are not about the statement: connection exceptions, refused log-ins, unknown database,
 * exhausted resources, system errors; and: the server shuts down, starts, ends a transaction that was left open, or is a
 * standby (PostgreSQL, appendix A).
 */
const SQLSTATES = /^(08...|28...|3D000|53...|58...|57P0[1-5]|25006|25P0[34])$/;

/** The subset of SQLSTATES with which PostgreSQL refuses one statement. The statement has had no effect. */
const REFUSALS = /^(53...|58...|25006)$/;

/** Messages of PgBouncer when it has no session for a client. It has sent nothing to PostgreSQL. */
const POOLER_REFUSALS =
  /^(query_wait_timeout|no more connections allowed|client connections exceeded|pgbouncer cannot)/;

/**
 * SQLSTATEs of a prepared statement that does not exist, of a name that another client of the pooler has prepared, and of
 * columns that have changed or have another type than the parameters. Wrong statements have some of them, too.
 */
const STALE = /^(26000|42...|0A000|XX000)$/;

/** Messages of pg about an established connection, without a code. */
const MESSAGES =
  /^(Connection terminated|Query read timeout$|Client (has encountered a connection error|was closed) and is not queryable$|Received unexpected .* message)/;

/** An error of Node, PostgreSQL or TypeORM. */
interface DatabaseFailure extends NodeJS.ErrnoException, Partial<Pick<DatabaseError, 'severity' | 'where'>> {
  /** The pg error that a TypeORM error wraps. */
  readonly driverError?: DatabaseFailure;
}

/** What TypeORM throws for an error of its statement: PostgreSQL's own in QueryFailedError, which has its members, too. */
export function asFailedQuery(error: unknown, { text }: { text: string }, values: readonly unknown[]): unknown {
  return error instanceof pg.DatabaseError ? new QueryFailedError(text, [...values], error) : error;
}

/** A database, or a session of it, on which the service would lose or misread data. The message names the remedy. */
export class UnusableDatabase extends Error {}

/** Whether an error means that the database is unreachable, overloaded or read-only. The connection should be closed. */
export function isConnectionFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (error instanceof UnusableDatabase) return true;
  const failure = failureOf(error);
  const { code, syscall, message } = failure;
  if (typeof code !== 'string') return MESSAGES.test(message);
  return (
    (typeof syscall === 'string' && SOCKET_CALLS.has(syscall)) || NETWORK_ERRORS.test(code) || SQLSTATES.test(code)
  );
}

function failureOf(error: Error): DatabaseFailure {
  return (error as DatabaseFailure).driverError ?? error;
}

/**
 * Whether a prepared statement may have failed before its execution because its preparation on the connection is stale: a
 * column has another type, or `DEALLOCATE` or `DISCARD` has dropped it. The statement has had no effect. If this is the
 * cause, it works when it is parsed anew.
 */
export function mayBeStale(error: unknown): boolean {
  return STALE.test(String((error as DatabaseFailure).code));
}

/** Whether PostgreSQL has undone a statement or transaction for a concurrent one: it could not be serialized, or was part of a deadlock. */
export function isUndone(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && /^40(001|P01)$/.test(String(failureOf(error).code));
}

/** Whether PostgreSQL has cancelled a statement, as a rule after STATEMENT_TIMEOUT_MS. It has had no effect. */
export function isCancelled(error: unknown): error is Error {
  if (error instanceof ApiError && error.definition === TOOK_TOO_LONG) return true;
  return error instanceof Error && failureOf(error).code === '57014';
}

/** The place of a row, such as `(0,1)`. In every language the error's context names that of the row that was waited for. */
const PLACE_OF_ROW = /\(\d+, ?\d+\)/;

/** Whether PostgreSQL has cancelled a statement while it waited for another transaction to commit or undo a row. */
export function isCancelledWait(error: unknown): error is Error {
  return isCancelled(error) && PLACE_OF_ROW.test(String(failureOf(error).where));
}

/**
 * The error to throw: ApiError UNAVAILABLE with the original as `cause` for a connection failure, else the original.
 *
 * @param isSentChange whether PostgreSQL may have received a change; if so, and unless it refused the statement, the message
 *   says that the outcome is unknown
 */
export function asUnavailable(error: unknown, isSentChange = false): unknown {
  if (!isConnectionFailure(error)) return error;
  const { code, message } = failureOf(error);
  const isRefusal = (typeof code === 'string' && REFUSALS.test(code)) || POOLER_REFUSALS.test(message);
  return isSentChange && !isRefusal ? unavailable(error, OUTCOME_UNKNOWN) : unavailable(error);
}

/** The error while the database is unreachable. The default message says that nothing was changed. */
export function unavailable(cause: Error, message = 'The database is not available. Try again.'): ApiError {
  return serviceUnavailable(causeOf(cause), message, { cause });
}

const OUTCOME_UNKNOWN =
  'The database did not confirm the change in time; it may have been made. ' +
  'A retry with the same Idempotency-Key settles it; without one, look whether it was made before you try again.';

/** For a change that a distributed database has cancelled, an error that says that it may have been made; else the error itself. */
export function asUncertain(error: unknown): unknown {
  // One that waited for a row has begun nothing.
  if (!isCancelled(error) || isCancelledWait(error)) return error;
  return new ApiError(TOOK_TOO_LONG, OUTCOME_UNKNOWN, {}, { cause: error, unavailableCause: 'database_slow' });
}

/** Whether an error leaves open if the change was made. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.message === OUTCOME_UNKNOWN;
}

function causeOf(error: Error): UnavailableCause {
  const { code, message } = failureOf(error);
  if (message === 'Query read timeout' || code === '57014') return 'database_slow';
  // pg-pool's message when all connections of the pool are busy.
  if (message === 'timeout exceeded when trying to connect') return 'database_busy';
  return typeof code === 'string' && REFUSALS.test(code) ? 'database_refused' : 'database_away';
}

/** By SQLSTATE (PostgreSQL, appendix A): what follows PostgreSQL's message. */
const ADVICE: Readonly<Record<string, string>> = {
  '42501':
    '. Grant the user of DATABASE_URL what "Roles and rights" of docs/operating.md lists; migrate and move need the owner.',
  '25006': ': the database is a standby or read-only. Set DATABASE_URL to the primary.',
  '53100': '. The disk of PostgreSQL is full: free some space on it, and try again.',
  '53300': '. Raise max_connections of PostgreSQL, or lower DATABASE_POOL_SIZE.',
};

/**
 * Turns an error of the database during a start or a command into one line that names the fault and the remedy. Undefined
 * for other errors.
 */
export function databaseFault(error: unknown): StartupError | undefined {
  const fault = rootFault(error);
  const message = (fault?.message ?? '').split('\n')[0] as string;
  if (fault === undefined || message === '') return undefined;
  if (typeof fault.severity === 'string') {
    const code = String(fault.code);
    const advice = ADVICE[code] ?? ` (SQLSTATE ${code}). The log of PostgreSQL says more.`;
    return new StartupError(`PostgreSQL refuses: ${message}${advice}`, { cause: error });
  }
  // Connection failures are always wrapped (`asUnavailable`); an error that is not wrapped comes from elsewhere.
  if (fault === error) return undefined;
  return new StartupError(`The database failed: ${message}. Try again when it is available.`, { cause: error });
}

/** The innermost error: that of PostgreSQL or of the socket. */
function rootFault(error: unknown): DatabaseFailure | undefined {
  const fault = error as DatabaseFailure | undefined;
  const inner = fault?.driverError ?? fault?.cause;
  return inner === undefined || typeof fault?.severity === 'string' ? fault : rootFault(inner);
}
