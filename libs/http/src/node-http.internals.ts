import { EventEmitter } from 'node:events';
import { createServer, IncomingMessage, type Server, type ServerOptions } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Reach } from '#runtime';

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

const ACTIONS = { createSteeredServer, stopListening, beforeFirstRead, filterChunks, stopReading };

export const NODE_HTTP: Reach & { check(actions?: Partial<typeof ACTIONS>): Promise<string | undefined> } = {
  dependency: 'node',
  touches:
    "the listener of 'connection' of an http.Server, net.Server's close on it, upgrade of http.IncomingMessage, and _read and push of requests",
  why: 'silent connections, a drain that keeps idle connections, WebSocket handshakes alone, 100 Continue, and bodies of small chunks',
  check: async (actions: Partial<typeof ACTIONS> = {}) => {
    const seen = await trial({ ...ACTIONS, ...actions });
    return seen === EXPECTED ? undefined : `its HTTP server acts in another way (${seen}; expected: ${EXPECTED})`;
  },
};

/** Turns of the event loop that a request in memory needs at most. */
const TURNS = 10;

const EXPECTED = [
  ...['silent', 'toy: request', 'websocket: upgrade', 'idle: request', 'idle: response', 'still open'],
  ...['body: request', 'unread', 'read', 'chunk a', 'data a', 'chunk b', 'stopped'],
].join(', ');

/** What happens on connections in memory, without a port and without a timer. */
async function trial(actions: typeof ACTIONS): Promise<string> {
  const seen: string[] = [];
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  };
  const { server, serve } = actions.createSteeredServer(
    { IncomingMessage: class extends IncomingMessage {} },
    ({ headers }) => headers.upgrade === 'websocket',
  );
  // Not that of the class, which tools replace to trace requests: these are none of the service.
  server.emit = (...event: Parameters<EventEmitter['emit']>) => EventEmitter.prototype.emit.apply(server, event);
  const open = (): [client: Duplex, socket: Socket] => {
    const [client, socket] = duplexPair() as [Duplex, Socket];
    server.emit('connection', socket);
    return [client, socket];
  };
  const ask = async (client: Duplex, fields: string): Promise<void> => {
    client.write(`GET / HTTP/1.1\r\nHost: toys.example\r\n${fields}\r\n\r\n`);
    await settle();
  };
  const nameOf = ({ headers }: IncomingMessage): string => String(headers.upgrade ?? headers['x-name']);
  server.on('upgrade', (request) => seen.push(`${nameOf(request)}: upgrade`));
  server.on('request', (request, response) => {
    seen.push(`${nameOf(request)}: request`);
    response.end();
  });
  let body: IncomingMessage | undefined;
  server.on('checkContinue', (request: IncomingMessage) => {
    seen.push('body: request');
    body = request;
    actions.beforeFirstRead(request, () => seen.push('read'));
    actions.filterChunks(request, (chunk) => {
      seen.push(`chunk ${String(chunk)}`);
      const isLast = String(chunk) === 'b';
      if (isLast) actions.stopReading(request);
      return !isLast;
    });
  });
  // From then on Node knows which connections are idle.
  server.emit('listening');
  try {
    const [client, socket] = open();
    await ask(client, 'Connection: Upgrade\r\nUpgrade: toy');
    seen.push(seen.length === 0 ? 'silent' : 'served at once');
    serve(socket);
    await settle();
    const [other, taken] = open();
    serve(taken);
    await ask(other, 'Connection: Upgrade\r\nUpgrade: websocket');
    const [kept, idle] = open();
    serve(idle);
    kept.once('data', () => seen.push('idle: response'));
    await ask(kept, 'X-Name: idle');
    actions.stopListening(server, () => undefined);
    await settle();
    seen.push(idle.destroyed ? 'closed' : 'still open');
    await ask(kept, 'Expect: 100-continue\r\nTransfer-Encoding: chunked');
    seen.push('unread');
    body?.on('data', (chunk) => seen.push(`data ${String(chunk)}`));
    await settle();
    for (const chunk of ['a', 'b', 'c']) kept.write(`1\r\n${chunk}\r\n`);
    await settle();
    // As Node does when a reader of the body asks for more.
    body?._read(1);
    await settle();
    seen.push(idle.isPaused() ? 'stopped' : 'reading');
    for (const each of [socket, taken, idle]) each.destroy();
  } finally {
    server.close();
  }
  return seen.join(', ');
}
