import type { Express } from 'express';
import { createServer, IncomingMessage, type Server } from 'node:http';
import type { Config } from '../../config.js';
import { createMessageClasses } from '../internals/express-prototypes.js';
import { canJoinWrites, joinWrites } from './connections/joined-writes.js';
import { MAX_HEADER_BYTES, TIMEOUT_CHECK_INTERVAL_MS } from './requests/server-limits.js';
import { limitUpgrades } from './connections/upgrades.js';

/**
 * Creates the HTTP server: message classes, limits and time-outs. `parser-errors.ts` answers 408 when a time-out is
 * over.
 */
export function createHttpServer(app: Express, config: Config): Server {
  const { fastPaths } = config;
  const classes = fastPaths ? createMessageClasses(app) : { IncomingMessage };
  // Never Node's own class, because `limitUpgrades` changes the prototype.
  const Request =
    classes.IncomingMessage === IncomingMessage ? class extends IncomingMessage {} : classes.IncomingMessage;
  const server = createServer({
    ...classes,
    IncomingMessage: Request,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: config.headersTimeoutMs,
    requestTimeout: config.requestTimeoutMs,
    keepAliveTimeout: config.keepAliveTimeoutMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    // `request-checks.ts` checks Host instead, so that the 400 has an Error body.
    requireHostHeader: false,
    noDelay: true,
  });
  // Without a listener, Node itself serves such requests as ordinary HTTP.
  server.on('newListener', (event) => {
    if (event === 'upgrade') limitUpgrades(Request.prototype);
  });
  // No limit on the number of header fields: by default Node ignores those after the first 1000, so they would not be
  // checked. MAX_HEADER_BYTES bounds the work.
  server.maxHeadersCount = 0;
  if (fastPaths && canJoinWrites()) server.on('connection', joinWrites);
  return server;
}
