import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LimitedWarnings } from '../../limited-warnings.js';
import { announcesBody } from '../requests/request-checks.js';
import {
  MAX_HELD_REQUESTS,
  MAX_PIPELINED_REQUESTS,
  MAX_REQUESTS_PER_CONNECTION,
  PIPELINED_BODY_WEIGHT,
  REFUSAL_PAUSE_MS,
} from '../requests/server-limits.js';

/** The members of `Config` that apply to connections. */
interface ConnectionLimits {
  readonly maxConnections: number;
  readonly writeTimeoutMs: number;
}

/** One request of a connection, or bytes that are no request. */
interface Turn {
  /** Undefined for bytes that are no request. */
  readonly response: Response | undefined;
  /** Begins to serve the request. */
  begin: () => void;
  hasBegun: boolean;
}

/** The state of one connection. */
interface Connection {
  /** The requests that are not answered, in the order in which they arrived. The first one is being served. */
  readonly turns: Turn[];
  /** The response of the request that arrived last. */
  latest: Response | undefined;
  /** Requests that have arrived. */
  arrived: number;
  /** `socket.bytesRead` when the last response was over; a larger value means that another request is arriving. */
  bytesRead: number;
  /** No further request is served; the connection is closed after the answers to the earlier ones. */
  isEnding: boolean;
  /** The parser has failed. */
  hasFailed: boolean;
  /** The first request was refused for overload, and the next one waits for REFUSAL_PAUSE_MS. */
  isPaused: boolean;
  /** The weight of the requests that were read ahead. */
  held: number;
}

const CONNECTION = Symbol('connection');

type ConnectionSocket = Duplex & { [CONNECTION]?: Connection };

function connectionOf(socket: Duplex): Connection {
  return (socket as ConnectionSocket)[CONNECTION] as Connection;
}

function newConnection(): Connection {
  return {
    turns: [],
    latest: undefined,
    arrived: 0,
    bytesRead: 0,
    isEnding: false,
    hasFailed: false,
    isPaused: false,
    held: 0,
  };
}

/** The response in progress on a connection, if there is one. */
export function answeringOn(socket: Duplex): Response | undefined {
  return connectionOf(socket).turns[0]?.response;
}

/**
 * The open connections of this process, and the order of the requests on each of them.
 *
 * - Requests of one connection are served one after the other, each in a turn of the event loop of its own. So a client that
 *   sends many requests ahead (pipelining) delays nobody else, and occupies memory for one answer only.
 * - A connection on which more than MAX_PIPELINED_REQUESTS wait is closed after their answers. MAX_HELD_REQUESTS bounds the
 *   requests of all connections that were read ahead; a connection beyond it is cut.
 * - A request with `Upgrade` ends the connection (see `upgrades.ts`), and so does request number
 *   MAX_REQUESTS_PER_CONNECTION. Its answer says `Connection: close`; later requests are ignored.
 * - After a request was refused for overload, the next one of its connection waits for REFUSAL_PAUSE_MS.
 * - Connections beyond MAX_CONNECTIONS are dropped.
 * - A connection whose client reads nothing of its answer for WRITE_TIMEOUT_MS is cut.
 */
export class Connections {
  private readonly warnings = new LimitedWarnings(new Logger(Connections.name));
  private readonly open = new Set<Socket>();
  private held = 0;
  private closesIdle = false;
  /** Connections that were dropped beyond MAX_CONNECTIONS since the start. */
  dropped = 0;

  constructor(
    server: Server,
    private readonly limits: ConnectionLimits,
  ) {
    server.timeout = limits.writeTimeoutMs;
    server.on('connection', (socket) => this.accept(socket));
    server.on('timeout', closeUnlessServed);
  }

  /** Open connections at this moment. */
  get size(): number {
    return this.open.size;
  }

  /** Calls `begin` when the earlier requests of the connection have been answered; usually at once. */
  arrive(request: Request, response: Response, begin: () => void): void {
    const connection = connectionOf(request.socket);
    const { turns } = connection;
    if (connection.isEnding || turns.length > (connection.isPaused ? 1 : 0)) this.hold(request, connection);
    if (connection.isEnding) return;
    connection.latest = response;
    const isLast = ++connection.arrived >= MAX_REQUESTS_PER_CONNECTION || turns.length >= MAX_PIPELINED_REQUESTS;
    if (isLast || request.headers.upgrade !== undefined) {
      connection.isEnding = true;
      response.shouldKeepAlive = false;
    }
    turns.push({ response, begin, hasBegun: false });
    if (turns.length === 1) beginFirst(connection);
  }

  /**
   * Ends a connection whose parser has failed: nothing more can be read. Earlier requests are answered first. Later calls
   * for the same connection have no effect.
   *
   * @param refuse answers the request whose body is broken, in its turn; called only if that request has not begun
   * @param finish answers bytes that are no request, and closes the connection; called only if no body is broken and no
   *   earlier answer ends the connection anyway
   * @returns the request whose body is broken, if it has begun: its handler answers it or has answered it
   */
  fail(
    socket: Duplex,
    refuse: (request: Request, response: Response) => void,
    finish: () => void,
  ): Request | undefined {
    const connection = connectionOf(socket);
    const { latest, turns, isEnding: wasEnding } = connection;
    if (connection.hasFailed) return undefined;
    connection.hasFailed = true;
    connection.isEnding = true;
    if (latest === undefined || latest.req.complete) {
      if (turns.length > 0 && wasEnding) return undefined;
      turns.push({ response: undefined, begin: finish, hasBegun: false });
      if (turns.length === 1) beginFirst(connection);
      return undefined;
    }
    latest.shouldKeepAlive = false;
    const waiting = turns.find(({ response }) => response === latest);
    if (waiting === undefined || waiting.hasBegun) return latest.req;
    waiting.begin = () => refuse(latest.req, latest);
    return undefined;
  }

  /**
   * Must be called when the response of a request that has begun is over. Starts the next request of the connection.
   */
  leave({ socket, context }: Request, response: Response): void {
    const connection = connectionOf(socket);
    if (connection.turns[0]?.response !== response) return;
    connection.bytesRead = socket.bytesRead;
    if (context.isRefused) {
      // Answering clients that retry without waiting would steal time from admitted requests.
      connection.isPaused = true;
      setTimeout(() => this.proceed(socket, connection), REFUSAL_PAUSE_MS).unref();
    } else {
      this.proceed(socket, connection);
    }
  }

  /** The requests that have begun and are not answered yet. */
  unanswered(): Request[] {
    const begun = [...this.open].flatMap((socket) => connectionOf(socket).turns.filter(({ hasBegun }) => hasBegun));
    return begun.flatMap(({ response }) => response?.req ?? []).filter(({ context }) => !context.isOver);
  }

  /** Closes the idle connections now, and each other connection when its requests are answered. */
  closeIdle(): void {
    this.closesIdle = true;
    for (const socket of this.open) {
      const { turns, bytesRead } = connectionOf(socket);
      // Not `server.closeIdleConnections()`, which cuts answers that are not sent completely.
      if (turns.length === 0 && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  /** Closes all connections now, also those that a listener of `upgrade` has taken over. */
  closeAll(): void {
    // Not `server.closeAllConnections()`, which leaves those of `upgrade` open.
    for (const socket of this.open) socket.destroy();
  }

  private accept(socket: Socket): void {
    // Not `server.maxConnections`: with WEB_CONCURRENCY the process would hand the connection back to its group,
    // which would offer it again without end.
    if (this.open.size >= this.limits.maxConnections) {
      socket.destroy();
      this.dropped++;
      this.warnings.warn('Dropped a connection beyond MAX_CONNECTIONS.');
      return;
    }
    const connection = newConnection();
    (socket as ConnectionSocket)[CONNECTION] = connection;
    this.open.add(socket);
    socket.once('close', () => {
      this.open.delete(socket);
      this.release(connection);
      connection.turns.length = 0;
    });
  }

  /** Ends the first turn, and begins the next one. */
  private proceed(socket: Socket, connection: Connection): void {
    const { turns } = connection;
    turns.shift();
    connection.isPaused = false;
    // The response closed the connection, so its later requests are not served.
    if (!socket.writable) return;
    if (turns.length > 0) {
      if (turns.length === 1) this.release(connection);
      // Not at once: the clients of other connections wait, too.
      setImmediate(beginFirst, connection);
    } else if (this.closesIdle || connection.isEnding) {
      socket.destroy();
    }
  }

  /** Counts a request that must wait or is ignored. Cuts the connection if all connections hold too many. */
  private hold(request: Request, connection: Connection): void {
    const weight = announcesBody(request) ? PIPELINED_BODY_WEIGHT : 1;
    connection.held += weight;
    this.held += weight;
    if (this.held <= MAX_HELD_REQUESTS || request.socket.destroyed) return;
    connection.isEnding = true;
    request.socket.destroy();
    this.warnings.warn('Cut a connection, because too many requests were sent ahead.');
  }

  private release(connection: Connection): void {
    this.held -= connection.held;
    connection.held = 0;
  }
}

function beginFirst({ turns: [first] }: Connection): void {
  if (first === undefined) return;
  first.hasBegun = true;
  first.begin();
}

/**
 * Listener of the server's `timeout` event: nothing was sent or received for WRITE_TIMEOUT_MS, or for
 * KEEP_ALIVE_TIMEOUT_MS on an idle connection. Closes a connection that is idle or whose client does not read its answer.
 * Keeps it while a handler works or a body arrives, which has a time-out of its own.
 */
function closeUnlessServed(socket: Socket): void {
  const answering = answeringOn(socket);
  if (answering !== undefined && socket.writableLength === 0) {
    socket.setTimeout(socket.timeout ?? 0);
    return;
  }
  if (answering !== undefined) answering.req.context.isCut = true;
  socket.destroy();
}
