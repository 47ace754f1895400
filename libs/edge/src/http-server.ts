import type { Express } from 'express';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Config, SettingsOf } from '#settings';
import { answeringOn } from './connections/connections.js';
import type { DRAIN_SETTINGS } from './connections/drain.js';
import { createMessageClasses } from './express-prototypes.internals.js';
import { joinWrites } from './joined-writes.internals.js';
import { steerUpgrades } from './node-http.internals.js';
import { announcesBody } from './requests/request-checks.js';
import type { REQUEST_LOG_SETTINGS } from './requests/request-context.js';
import { MAX_HEADER_BYTES, type SERVER_SETTINGS, TIMEOUT_CHECK_INTERVAL_MS } from './requests/server-limits.js';

export type HttpConfig = Pick<Config, 'product'> &
  SettingsOf<typeof SERVER_SETTINGS & typeof DRAIN_SETTINGS & typeof REQUEST_LOG_SETTINGS>;

/** Creates the HTTP server: message classes, limits and time-outs. `parser-errors.ts` answers 408 when a time-out is over. */
export function createHttpServer(app: Express, config: HttpConfig): Server {
  const classes = createMessageClasses(app);
  steerUpgrades(classes.IncomingMessage, switchesProtocol);
  const server = createServer({
    ...classes,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: Math.min(config.headersTimeoutMs, config.requestTimeoutMs),
    requestTimeout: config.requestTimeoutMs,
    keepAliveTimeout: config.keepAliveTimeoutMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    // `request-checks.ts` checks Host instead, so that the 400 has an Error body.
    requireHostHeader: false,
    // Otherwise Node would keep the first of two `Authorization` or `Host` fields, and others might read the second one.
    joinDuplicateHeaders: true,
    noDelay: true,
  });
  server.maxConnections = config.maxConnections;
  // No limit on the number of header fields: by default Node ignores those after the first 1000, so they would not be
  // checked. MAX_HEADER_BYTES bounds the work.
  server.maxHeadersCount = 0;
  server.on('connection', joinWrites);
  return server;
}

/**
 * Whether a request with `Upgrade` switches protocols: WebSocket handshakes (RFC 6455) to which no earlier response of the connection
 * is outstanding, if a module listens to the server's event `upgrade`. The listener checks the API key itself.
 *
 * Every other `Upgrade` is ignored (RFC 9110, section 7.8); CONNECT, too, which is 400. Node's parser then drops the data that it has
 * already read after the request, so the connection ends after the response (`connections.ts`).
 */
function switchesProtocol(request: IncomingMessage): boolean {
  const isWebSocket = request.method === 'GET' && request.headers.upgrade?.toLowerCase() === 'websocket';
  return isWebSocket && !announcesBody(request) && answeringOn(request.socket) === undefined;
}
