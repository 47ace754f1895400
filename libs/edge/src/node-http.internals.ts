import { IncomingMessage, type Server } from 'node:http';
import { Server as NetServer } from 'node:net';

const UPGRADE = Symbol('upgrade');

/**
 * Lets only `switches` say which requests with `Upgrade`, or with CONNECT, change the protocol of their connection; all others are
 * ordinary requests. It is called again each time that Node asks.
 *
 * @param Request a class of requests that no other server has, because its prototype is changed
 */
export function steerUpgrades(Request: typeof IncomingMessage, switches: (request: IncomingMessage) => boolean): void {
  Object.defineProperty(Request.prototype, 'upgrade', {
    configurable: true,
    get(this: IncomingMessage & { [UPGRADE]?: boolean }) {
      return this[UPGRADE] && switches(this);
    },
    set(this: { [UPGRADE]?: boolean }, value: boolean) {
      this[UPGRADE] = value;
    },
  });
}

/**
 * Accepts no more connections. Unlike `server.close()`, keeps those that are idle, and goes on to check time-outs.
 *
 * @param closed called when no connection is open
 */
export function stopListening(server: Server, closed: () => void): void {
  NetServer.prototype.close.call(server, closed);
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
