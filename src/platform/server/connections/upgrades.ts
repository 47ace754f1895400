import type { IncomingMessage } from 'node:http';
import { answeringOn } from './connections.js';
import { announcesBody } from '../requests/request-checks.js';

const UPGRADE = Symbol('upgrade');

type Message = IncomingMessage & { [UPGRADE]?: boolean };

/**
 * Decides which requests with `Upgrade` switch protocols: WebSocket handshakes (RFC 6455), if a module listens to the
 * server's event `upgrade`. The listener gets the socket, with everything that the client sends after it,
 * and checks the API key itself.
 *
 * Every other `Upgrade` is ignored, as RFC 9110, section 7.8 allows, and the request is served as ordinary HTTP. Node's
 * parser then drops the data that it has already read after the request, so it could lose a request, or begin one in the
 * middle of another. Therefore `connections.ts` ends the connection after the answer.
 *
 * @param prototype the prototype of the server's request class; Node reads its member `upgrade`
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

/** Whether a request is a WebSocket handshake, and no earlier answer of the connection is outstanding. */
function isHandshake(request: IncomingMessage): boolean {
  return (
    request.method === 'GET' &&
    request.headers.upgrade?.toLowerCase() === 'websocket' &&
    !announcesBody(request) &&
    answeringOn(request.socket) === undefined
  );
}
