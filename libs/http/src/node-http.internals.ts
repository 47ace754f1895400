import { createServer, IncomingMessage, type Server, type ServerOptions } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';

const UPGRADE = Symbol('upgrade');

/**
 * Creates an HTTP server that leaves two decisions to its caller. Only `serve` makes a new connection one of HTTP, and begins the
 * time in which its first header section must arrive. And only `switches` says which requests with `Upgrade`, or with CONNECT, change the
 * protocol of their connection; all others are ordinary requests. It is called again each time that Node asks.
 *
 * @param options with a class of requests that no other server has, because its prototype is changed
 */
export function createSteeredServer(
  options: ServerOptions & { readonly IncomingMessage: typeof IncomingMessage },
  switches: (request: IncomingMessage) => boolean,
): { server: Server; serve: (socket: Socket) => void } {
  const server = createServer(options);
  const [serve] = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  Object.defineProperty(options.IncomingMessage.prototype, 'upgrade', {
    configurable: true,
    get(this: IncomingMessage & { [UPGRADE]?: boolean }) {
      return this[UPGRADE] && switches(this);
    },
    set(this: { [UPGRADE]?: boolean }, value: boolean) {
      this[UPGRADE] = value;
    },
  });
  return { server, serve: (socket) => serve?.call(server, socket) };
}

/**
 * Accepts no more connections. Unlike `server.close()`, keeps those that are idle, and goes on to check time-outs.
 *
 * @param closed called when no connection is open
 */
export function stopListening(server: Server, closed: () => void): void {
  NetServer.prototype.close.call(server, closed);
}

/** Calls `begin` once, when code reads the body of a request for the first time, before Node goes on to read the connection. */
export function beforeFirstRead(request: IncomingMessage, begin: () => void): void {
  let isFirst = true;
  request._read = function (size) {
    if (isFirst) begin();
    isFirst = false;
    IncomingMessage.prototype._read.call(this, size);
  };
}

/** Asks `keeps` about each chunk of a body as the client has sent it, null at the end. What it refuses never becomes part of the body. */
export function filterChunks(request: IncomingMessage, keeps: (chunk: Buffer | null) => boolean): void {
  request.push = function (chunk: Buffer | null, encoding) {
    // With false, Node's parser stops reading the connection until `_read`.
    return keeps(chunk) && IncomingMessage.prototype.push.call(this, chunk, encoding);
  };
}

/** Lets Node read nothing more of a request and of its connection. */
export function stopReading(request: IncomingMessage): void {
  request._read = request.socket._read = () => undefined;
  request.socket.pause();
}
