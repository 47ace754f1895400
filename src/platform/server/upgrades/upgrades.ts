import type { IncomingMessage } from 'node:http';
import { answeringOn } from '../connections/connections.js';
import { announcesBody } from '../requests/request-body.js';

const UPGRADE = Symbol('upgrade');

type Message = IncomingMessage & { [UPGRADE]?: boolean };

/**
 * Decides which requests with `Upgrade` leave HTTP: handshakes of WebSockets (RFC 6455), when a module listens to the
 * server's event `upgrade`. The listener gets the socket with all that the client sends behind the handshake, once
 * `handshakes.ts` has admitted it.
 *
 * Every other `Upgrade` is ignored, as RFC 9110, section 7.8 allows: the request is served, whoever listens. Node's
 * parser then drops the rest of what it has read and goes on with what arrives later, so it could lose a request or find
 * one in the middle of another. Therefore `connections.ts` ends the connection behind the answer.
 *
 * @param prototype of the class of the server's requests; Node asks its member `upgrade`
 */
export function limitUpgrades(prototype: IncomingMessage): void {
  Object.defineProperty(prototype, 'upgrade', {
    configurable: true,
    get(this: Message) {
      if (this[UPGRADE]) this[UPGRADE] = this.method === 'CONNECT' || isHandshake(this);
      return this[UPGRADE];
    },
    set(this: Message, value: boolean) {
      this[UPGRADE] = value;
    },
  });
}

/** Whether a request is the handshake of a WebSocket, and no earlier answer of the connection is outstanding. */
function isHandshake(request: IncomingMessage): boolean {
  return (
    request.method === 'GET' &&
    request.headers.upgrade?.toLowerCase() === 'websocket' &&
    !announcesBody(request) &&
    answeringOn(request.socket) === undefined
  );
}
