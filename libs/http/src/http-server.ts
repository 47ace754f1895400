import type { Express } from 'express';
import { createServer, IncomingMessage, type Server } from 'node:http';
import { Socket } from 'node:net';
import { createMessageClasses, takeConnections } from '#internals';
import type { Config, SettingsOf } from '#settings';
import { answeringOn, connectionOf } from './connections/connections.js';
import type { DRAIN_SETTINGS } from './connections/drain.js';
import { announcesBody } from './requests/request-checks.js';
import type { REQUEST_LOG_SETTINGS } from './requests/request-context.js';
import { MAX_HEADER_BYTES, type SERVER_SETTINGS, TIMEOUT_CHECK_INTERVAL_MS } from './requests/server-limits.js';

export type HttpConfig = Pick<Config, 'fastPaths' | 'product'> &
  SettingsOf<typeof SERVER_SETTINGS & typeof DRAIN_SETTINGS & typeof REQUEST_LOG_SETTINGS>;

/**
 * Creates the HTTP server: message classes, limits and time-outs. `parser-errors.ts` answers 408 when a time-out is
 * over. `serve` makes a connection one of HTTP; `connections.ts` calls it.
 */
export function createHttpServer(
  app: Express,
  config: HttpConfig,
): { server: Server; serve: (socket: Socket) => void } {
  const { fastPaths } = config;
  // Never Node's own class, because `limitUpgrades` changes the prototype.
  const classes = fastPaths ? createMessageClasses(app) : { IncomingMessage: class extends IncomingMessage {} };
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
  const serve = takeConnections(server);
  limitUpgrades(classes.IncomingMessage.prototype);
  // No limit on the number of header fields: by default Node ignores those after the first 1000, so they would not be
  // checked. MAX_HEADER_BYTES bounds the work.
  server.maxHeadersCount = 0;
  if (fastPaths) server.on('connection', joinWrites);
  return { server, serve };
}

/**
 * Lets a connection write at the end of a turn of the event loop, and drop empty writes, by the methods that Node documents for
 * implementers of streams.
 *
 * Requests that share a statement get their responses in one turn. To write them behind the work for all takes less time than
 * to write each behind its own. And Node ends each response with an empty write, for which the system's gather write needs
 * a buffer; a single text needs none.
 */
export function joinWrites(socket: Socket): void {
  let waiting: Parameters<Socket['_write']> | undefined;
  const write = (): void => {
    const parameters = waiting;
    waiting = undefined;
    if (parameters) Socket.prototype._write.apply(socket, parameters);
  };
  socket._write = (...parameters) => {
    waiting = parameters;
    process.nextTick(write);
  };
  socket._writev = (chunks, callback) => {
    const [first, second] = chunks as { chunk: unknown; encoding: BufferEncoding }[];
    if (first !== undefined && chunks.length === 2 && second?.chunk === '') {
      socket._write(first.chunk, first.encoding, callback);
    } else {
      Socket.prototype._writev?.call(socket, chunks, callback);
    }
  };
  socket._destroy = (error, callback) => {
    write();
    Socket.prototype._destroy.call(socket, error, callback);
  };
}

const UPGRADE = Symbol('upgrade');

/**
 * Decides which requests with `Upgrade` switch protocols: WebSocket handshakes (RFC 6455) to which no earlier response
 * of the connection is outstanding, if a module listens to the server's event `upgrade`. The listener gets the socket,
 * with everything that the client sends after it, and checks the API key itself.
 *
 * Every other `Upgrade` is ignored, as RFC 9110, section 7.8 allows, and the request is served as ordinary HTTP; CONNECT, too,
 * which is 400. Node's parser then drops the data that it has already read after the request, so it could lose a request, or
 * begin one in the middle of another. Therefore the connection ends after the response (`connections.ts`).
 */
function limitUpgrades(prototype: IncomingMessage): void {
  Object.defineProperty(prototype, 'upgrade', {
    configurable: true,
    get(this: IncomingMessage & { [UPGRADE]?: boolean }) {
      if (!this[UPGRADE]) return this[UPGRADE];
      const isWebSocket = this.method === 'GET' && this.headers.upgrade?.toLowerCase() === 'websocket';
      const isTaken = isWebSocket && !announcesBody(this) && answeringOn(this.socket) === undefined;
      // Until a request with `Upgrade` arrives after all, because no module listens.
      if (isTaken) connectionOf(this.socket).isTaken = true;
      return isTaken;
    },
    set(this: { [UPGRADE]?: boolean }, value: boolean) {
      this[UPGRADE] = value;
    },
  });
}
