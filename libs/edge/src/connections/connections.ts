import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LimitedWarnings } from '#runtime';
import { isExempt, TOO_MANY_IN_FLIGHT } from '../requests/requests-in-flight.js';
import { MAX_PIPELINED_REQUESTS, REFUSAL_PAUSE_MS } from '../requests/server-limits.js';
import type { ClientId, Turns } from '../requests/turns.js';

class Connection {
  /** The requests without a response, in the order in which they arrived. The first one is being served. */
  readonly turns: { readonly response: Response; readonly begin: () => void }[] = [];
  latest: Response | undefined;
  /** `socket.bytesRead` when the last response was over; a larger value means that another request is arriving. */
  bytesRead = 0;
  /** Requests after `latest` are not served; the connection is closed after its response. */
  isEnding = false;
}

const CONNECTION = Symbol('connection');

type ConnectionSocket = Duplex & { [CONNECTION]?: Connection };

export function connectionOf(socket: Duplex): Connection {
  return (socket as ConnectionSocket)[CONNECTION] as Connection;
}

/** The response in progress on a connection, if there is one. */
export function answeringOn(socket: Duplex): Response | undefined {
  return connectionOf(socket).turns[0]?.response;
}

/**
 * The open connections of this process, and the order of the requests on each of them.
 *
 * - Requests of one connection are served one after the other, each in a turn of the event loop of its own, so pipelining delays
 *   nobody else. All begin when it is their client's turn (`turns.ts`).
 * - A request with `Upgrade` ends the connection (`http-server.ts`): later requests are ignored.
 * - A silent connection, on which nothing has arrived, is closed after KEEP_ALIVE_TIMEOUT_MS without a response and a line in the log.
 * - A connection whose client reads nothing of its response for `writeTimeoutMs` is cut; new ones beyond the limit are dropped.
 */
export class Connections {
  private readonly warnings = new LimitedWarnings(new Logger(Connections.name));
  readonly open = new Set<Socket>();
  /** Requests that wait behind an earlier one of their connection. */
  private waiting = 0;
  private closesIdle = false;
  /** Connections that were dropped beyond the limit since the start. */
  dropped = 0;

  constructor(
    private readonly server: Server,
    private readonly limits: Readonly<Record<'maxConnections' | 'writeTimeoutMs' | 'keepAliveTimeoutMs', number>>,
    private readonly turns: Turns,
    private readonly clientOf: (request: Request) => ClientId,
  ) {
    server.timeout = limits.writeTimeoutMs;
    server.on('connection', (socket) => this.accept(socket));
    server.on('drop', () => {
      this.dropped++;
      this.warnings.warn(`Dropped a connection beyond the limit of ${limits.maxConnections}.`);
    });
    server.on('timeout', closeUnlessServed);
  }

  /** Calls `begin` when the earlier requests of the connection have their responses; usually at once. */
  arrive(request: Request, response: Response, begin: () => void): void {
    const connection = connectionOf(request.socket);
    const { turns } = connection;
    turns.push({ response, begin });
    if (turns.length > 1 && ++this.waiting > MAX_PIPELINED_REQUESTS && !request.socket.destroyed) {
      request.socket.destroy();
      this.warnings.warn('Cut a connection, because too many requests were sent ahead.');
    }
    if (connection.isEnding) return;
    // Until the first request it is that of a silent connection.
    if (connection.latest === undefined) request.socket.setTimeout(this.server.timeout);
    connection.latest = response;
    if (request.headers.upgrade !== undefined) {
      connection.isEnding = true;
      response.setHeader('Connection', 'close');
    }
    if (turns.length === 1) this.begin(request, begin);
  }

  /**
   * Ends a connection whose parser has failed: nothing more can be read. Earlier requests still get their responses.
   *
   * @returns the request whose body is broken; `idle` if no request is unanswered, so that an error may be sent
   */
  fail(socket: Duplex): Request | 'idle' | undefined {
    const connection = connectionOf(socket);
    const { latest, turns } = connection;
    connection.isEnding = true;
    if (latest === undefined || latest.req.complete) return turns.length === 0 ? 'idle' : undefined;
    if (!latest.headersSent) latest.setHeader('Connection', 'close');
    return latest.req;
  }

  /** Must be called when a response is over. Starts the next request of the connection. */
  leave({ socket, context }: Request, response: Response): void {
    const connection = connectionOf(socket);
    if (connection.turns[0]?.response !== response) return;
    connection.bytesRead = socket.bytesRead;
    if (context.refusal === TOO_MANY_IN_FLIGHT) {
      // Responding to clients that retry without waiting would steal time from admitted requests.
      setTimeout(() => this.proceed(socket, connection), REFUSAL_PAUSE_MS).unref();
    } else {
      this.proceed(socket, connection);
    }
  }

  /** Ends the event streams (`@Sse()`), which their clients would keep open; they connect again, to another process. */
  endStreams(): void {
    for (const socket of this.open) {
      const response = answeringOn(socket);
      if (socket.writable && response?.headersSent && response.getHeader('Content-Type') === 'text/event-stream')
        socket.destroySoon();
    }
  }

  /** Closes the idle connections now, and each other connection when its requests have their responses. */
  closeIdle(): void {
    this.closesIdle = true;
    for (const socket of this.open) {
      const { turns, bytesRead } = connectionOf(socket);
      // Not `server.closeIdleConnections()`, which cuts responses that are not sent completely.
      if (turns.length === 0 && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  /**
   * Closes all connections now, also those that a listener of `upgrade` has taken over.
   *
   * @returns the requests that have no whole response
   */
  closeAll(): Request[] {
    const served = [...this.open].flatMap((socket) => answeringOn(socket) ?? []);
    const unanswered = served.filter(({ closed }) => !closed).map(({ req }) => req);
    // Not `server.closeAllConnections()`, which leaves those of `upgrade` open.
    for (const socket of this.open) socket.destroy();
    return unanswered;
  }

  private accept(socket: Socket): void {
    const connection = new Connection();
    (socket as ConnectionSocket)[CONNECTION] = connection;
    this.open.add(socket);
    socket.once('close', () => {
      this.open.delete(socket);
      this.waiting -= Math.max(0, connection.turns.length - 1);
      connection.turns.length = 0;
    });
    socket.setTimeout(this.limits.keepAliveTimeoutMs);
  }

  private begin(request: Request, begin: () => void): void {
    if (this.turns.mayBegin()) {
      begin();
    } else {
      const client = this.clientOf(request) ?? (isExempt(request) ? 'probes' : undefined);
      this.turns.wait(client, () => request.socket.destroyed || begin());
    }
  }

  private proceed(socket: Socket, connection: Connection): void {
    const { turns } = connection;
    const over = turns.shift();
    if (turns.length > 0) this.waiting--;
    // The response closed the connection, so its later requests are not served.
    if (!socket.writable) return;
    // Also if the response has set `Connection: keep-alive` itself.
    const isLast = connection.isEnding && over?.response === connection.latest;
    if (turns.length > 0 && !isLast) {
      // Not at once: the clients of other connections wait, too.
      setImmediate(() => turns[0] && this.begin(turns[0].response.req, turns[0].begin));
    } else if (this.closesIdle || connection.isEnding) {
      socket.destroy();
    }
  }
}

/**
 * Listener of the server's `timeout` event: nothing was sent or received for `writeTimeoutMs`, or KEEP_ALIVE_TIMEOUT_MS when idle.
 * Keeps a connection while a handler works or a body arrives, which has a time-out of its own.
 */
function closeUnlessServed(socket: Socket): void {
  if (answeringOn(socket) !== undefined && socket.writableLength === 0) socket.setTimeout(socket.timeout ?? 0);
  else socket.destroy();
}
