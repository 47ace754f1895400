import { StartupError } from '../../errors/startup-error.js';

/** An error of PostgreSQL (`code` is its SQLSTATE) or of a socket, or an error that wraps one. */
interface Fault {
  readonly message?: string;
  readonly code?: unknown;
  readonly severity?: unknown;
  /** The error that an error of TypeORM wraps. */
  readonly driverError?: unknown;
  readonly cause?: unknown;
}

/** By SQLSTATE (PostgreSQL, appendix A): makes a line of PostgreSQL's message and of advice. */
const ADVICE: Readonly<Record<string, (message: string) => string>> = {
  '42501': (message) =>
    `${message}. Grant the user of DATABASE_URL what "Roles and rights" of docs/operating.md lists.`,
  '25006': (message) => `${message}: the database is a standby or read-only. Set DATABASE_URL to the primary.`,
  '53100': (message) => `${message}. The disk of PostgreSQL is full: free some space on it, and try again.`,
  '53300': (message) => `${message}. Raise max_connections of PostgreSQL, or lower DATABASE_POOL_SIZE.`,
  '57014': (message) => `${message}. Something in the database blocks or slows it down: try again when that has ended.`,
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
    const line = ADVICE[code]?.(message) ?? `${message} (SQLSTATE ${code}). The log of PostgreSQL says more.`;
    return new StartupError(`PostgreSQL refuses: ${line}`, { cause: error });
  }
  // Connection failures are always wrapped (`asUnavailable`); an error that is not wrapped comes from elsewhere.
  if (fault === error) return undefined;
  return new StartupError(`The database failed: ${message}. Try again when it is available.`, { cause: error });
}

/** The innermost error: that of PostgreSQL or of the socket. */
export function rootFault(error: unknown): Fault | undefined {
  let fault = error as Fault | undefined;
  for (;;) {
    const inner = (fault?.driverError ?? fault?.cause) as Fault | undefined;
    if (inner === undefined || typeof fault?.severity === 'string') return fault;
    fault = inner;
  }
}
