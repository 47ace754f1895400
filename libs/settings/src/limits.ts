/**
 * Limits that are no settings: nobody needs another value, or it follows from a setting. Times are in ms. They are members
 * of `Config`, so that tests can shorten them.
 */
export const LIMITS = {
  /** Longest time for the header section of a request to arrive; at most REQUEST_TIMEOUT_MS. Then 408. */
  headersTimeoutMs: 10_000,
  /** A client may read nothing of its response for this time, or at most twice as long; then its connection is cut. */
  writeTimeoutMs: 30_000,
  /** Open connections of a process, fewer if the limit of open files is lower. */
  maxConnections: 10_000,
  /** From the stop signal until idle connections are closed: clients may be sending requests on them. */
  shutdownLingerMs: 1_000,
  /**
   * Longest wait for a connection of the pool. Longer than the 2 s for which a migration waits for a lock, behind which
   * every read of the table queues.
   */
  acquireTimeoutMs: 5_000,
  /** Longest wait of a start for a database that is away. Shorter than the startup probe of `ops/kubernetes`. */
  startTimeoutMs: 120_000,
  /** Age at which a pooled connection is replaced, so that an old server or password goes out of use. */
  databaseConnectionMaxAgeMs: 1_800_000,
};

/** Open files of a process besides the connections of clients and of the pools: the log, the modules and others. */
const OTHER_OPEN_FILES = 100;

/** The largest number of connections for which the limit of open files has room. */
export function connectionsWithin(files: number, databaseConnections: number): number {
  return Math.max(1, Math.min(LIMITS.maxConnections, files - databaseConnections - OTHER_OPEN_FILES));
}

/** The limit of open files of this process; Infinity without a limit. Read once, because it takes 7 ms. */
export const OPEN_FILES_LIMIT = openFilesLimit();

function openFilesLimit(): number {
  const report = process.report as typeof process.report & { excludeNetwork?: boolean };
  // Otherwise the report looks up the names of all peers in DNS.
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  const limit = Number(userLimits?.open_files?.soft);
  // Without a limit the report says 'unlimited'.
  return Number.isNaN(limit) ? Infinity : limit;
}
