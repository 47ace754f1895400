import { type IncomingMessage, Server, type ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';

const UPGRADE = Symbol('upgrade');

/**
 * Lets only `switches` say which requests with `Upgrade`, or with CONNECT, change the protocol of their connection. `Request` must be a
 * class that no other server has, because its prototype is changed.
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

/** The events by which a server hands over a request. */
export const REQUEST_EVENTS = ['request', 'checkContinue', 'checkExpectation'] as const;
export type RequestEvent = (typeof REQUEST_EVENTS)[number];

/**
 * Calls `arrive` for each request before any listener of the server: packages such as engine.io put theirs in front of all others. The
 * listeners are called by `emit`.
 */
export function holdRequests(
  server: Server,
  arrive: (event: RequestEvent, request: IncomingMessage, response: ServerResponse, emit: () => void) => void,
): void {
  const emit = (...parameters: unknown[]): boolean => Server.prototype.emit.apply(server, parameters as never);
  server.emit = (event: string, ...parameters: unknown[]) => {
    if (!REQUEST_EVENTS.includes(event as RequestEvent)) return emit(event, ...parameters);
    const [request, response] = parameters as [IncomingMessage, ServerResponse];
    arrive(event as RequestEvent, request, response, () => emit(event, request, response));
    return true;
  };
}

/** Accepts no more connections; `closed` is called when none is open. Unlike `server.close()`, keeps those that are idle. */
export function stopListening(server: Server, closed: () => void): void {
  NetServer.prototype.close.call(server, closed);
}

/** Takes away what makes Node refuse the head of a response, so that the head of an error can be sent. */
export function cleanHead(response: ServerResponse): void {
  response.statusMessage = '';
  response.removeHeader('Trailer');
  // Node has taken the body from a 204 or 304, and would send none with another status.
  Object.assign(response, { _hasBody: response.req.method !== 'HEAD' });
}
