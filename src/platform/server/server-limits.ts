/** Limits of the HTTP server that are no settings: no client of this API comes near them. */

/** Largest header section in bytes, request line included; larger ones are answered 431. */
export const MAX_HEADER_BYTES = 16 * 1024;

/** Longest request target in characters; longer ones are answered 414. */
export const MAX_URI_LENGTH = 8 * 1024;

/** Requests served on one connection before it is closed, so that load spreads after a change of instances. */
export const MAX_REQUESTS_PER_CONNECTION = 100_000;

/**
 * When an answer is sent before the whole request has arrived, the connection is closed; but closing it at once could
 * destroy the answer on its way (RFC 9112, section 9.6). So this much of the rest is read and dropped, for this long.
 */
export const LINGER_BYTES = 1024 * 1024;
export const LINGER_MS = 1_000;

/** How often, in ms, the server looks for connections that are over their time-outs. */
export const TIMEOUT_CHECK_INTERVAL_MS = 500;

/**
 * Requests that a client may send ahead on one connection, beyond the one that is being answered. One more is answered 503
 * behind them, and the connection is closed.
 */
export const MAX_PIPELINED_REQUESTS = 100;

/**
 * Time in ms for which nothing is read from a connection after a request on it was refused for want of room. Short, because
 * the connection may be a proxy's, and its next request another client's.
 */
export const REFUSAL_PAUSE_MS = 250;

/**
 * Connections beyond MAX_CONNECTIONS that are still answered, once each, so that health checks get through; and the time
 * in ms in which their request must have come.
 */
export const SPARE_CONNECTIONS = 64;
export const SPARE_CONNECTION_MS = 1_000;

/** Least time in ms between two warnings of connections that were dropped. */
export const WARNING_INTERVAL_MS = 1_000;
