import { integer, limit, milliseconds } from '#settings';

/** Open files of a process besides the connections of clients: those to the database or of its engine (200), the log and others. */
const OTHER_OPEN_FILES = 300;

export const SERVER_SETTINGS = {
  requestTimeoutMs: milliseconds(
    'REQUEST_TIMEOUT_MS',
    30_000,
    'Longest time in ms for a whole request to arrive, from its first byte, 10 s of it for the header section; then it gets 408.',
  ),
  keepAliveTimeoutMs: integer(
    'KEEP_ALIVE_TIMEOUT_MS',
    75_000,
    [100, 3_600_000],
    'A connection on which nothing is sent is closed after this time in ms, also before its first request. Longer than the 60 s ' +
      'of usual load balancers, so that they close it.',
  ),
  maxRequestsInFlight: integer(
    'MAX_REQUESTS_IN_FLIGHT',
    1_000,
    [1, 1_000_000],
    'Largest number of requests that a process works on at a time, and a quarter more for known API keys. Further requests get ' +
      '503 at once, health checks and metrics excepted.',
  ),
  /** Longest time in ms for the header section of a request to arrive, from its first byte; at most REQUEST_TIMEOUT_MS. Then 408. */
  headersTimeoutMs: limit(10_000),
  /** A client may read nothing of its response for this time in ms, or at most twice as long; then its connection is cut. */
  writeTimeoutMs: limit(30_000),
  /** Open connections of a process, fewer if its limit of open files is lower. */
  maxConnections: limit(Math.max(1, Math.min(10_000, openFilesLimit() - OTHER_OPEN_FILES))),
};

/** The limit of open files of this process; Infinity without a limit. */
function openFilesLimit(): number {
  const report = process.report as typeof process.report & { excludeNetwork?: boolean };
  // Otherwise the report looks up the names of all peers in DNS.
  report.excludeNetwork = true;
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  // Without a limit the report says 'unlimited'.
  return Number(userLimits?.open_files?.soft) || Infinity;
}

/** Largest header section in bytes, request line included. A larger one gets 431. */
export const MAX_HEADER_BYTES = 16 * 1024;

/**
 * Memory in bytes for the bodies of a process, until their requests have responses: four times the largest MAX_BODY_BYTES. Each chunk
 * costs CHUNK_COST beside its length. A body for which too little is left gets 503.
 */
export const MAX_BYTES_OF_BODIES = 64 * 1024 * 1024;
export const CHUNK_COST = 512;

/** Largest form in bytes, whatever MAX_BODY_BYTES says: parsing a MiB takes up to 0.2 s. */
export const MAX_FORM_BYTES = 1024 * 1024;

/**
 * Time in ms after which no further work begins in a turn of the event loop, so that everybody's turn comes soon: a request that
 * begins, a body or a page beyond the next two sizes.
 */
export const TURN_MS = 2;

/** Bodies of more bytes, and responses of arrays with more items, wait for their client's turn: each takes up to some ms. */
export const LARGE_BODY_BYTES = 8 * 1024;
export const LARGE_PAGE_ITEMS = 25;

/** Longest request target in characters. A longer one gets 414. */
export const MAX_URI_LENGTH = 8 * 1024;

/**
 * Lingering close: of a request that has its response before it has arrived, at most this many bytes are read and dropped, for at most this
 * many ms. Closing at once could destroy the response on its way (RFC 9112, section 9.6).
 */
export const LINGER_BYTES = 1024 * 1024;
export const LINGER_MS = 1_000;

/**
 * Connections that the operating system keeps until the process accepts them. Linux allows `net.core.somaxconn`, by default
 * 4096. Node's default is 511; beyond it, clients that connect at the same moment try again only after a second.
 */
export const LISTEN_BACKLOG = 4_096;

/** Interval in ms of the check for `headersTimeoutMs` and `requestTimeoutMs`; a 408 may be late by this much. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;

/**
 * Most requests of all connections that wait for their turn, because their clients sent them ahead (pipelining). A connection
 * beyond the limit is cut: up to 64 KiB of the body of each may be in memory.
 */
export const MAX_PIPELINED_REQUESTS = 2_000;

/**
 * How long, in ms, the next request of a connection waits after one was refused for overload. Short, because the connection may be a
 * proxy's, and its next request another client's.
 */
export const REFUSAL_PAUSE_MS = 250;
