import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isExempt, type RequestsInFlight } from './requests-in-flight.js';
import {
  MAX_PIPELINED_REQUESTS,
  MAX_REQUESTS_PER_CONNECTION,
  REFUSAL_PAUSE_MS,
  SPARE_CONNECTION_MS,
  SPARE_CONNECTIONS,
  WARNING_INTERVAL_MS,
} from '../requests/server-limits.js';

/** The settings of the same names. */
interface ConnectionLimits {
  readonly maxConnections: number;
  readonly writeTimeoutMs: number;
}

/** What the server remembers about a connection. */
interface Connection {
  /** The response in progress. The next request of the connection starts when it is over. */
  answering: Response | undefined;
  /** The response of the request that arrived last. */
  latest: Response | undefined;
  /** Starts the requests that arrived during an earlier one, in their order. */
  waiting: (() => void)[];
  /** Requests that have arrived. */
  arrived: number;
  /** At least one request has been answered. */
  hasAnswered: boolean;
  /** `socket.bytesRead` when the last response was over; a larger value means that another request is arriving. */
  bytesRead: number;
  /** No further request is served; the connection is closed behind the answers to the earlier ones. */
  isEnding: boolean;
  /** More than MAX_PIPELINED_REQUESTS were sent ahead. The first one beyond them is refused. */
  isFlooded: boolean;
  /** The parser has failed. */
  hasFailed: boolean;
}

const CONNECTION = Symbol('connection');

type ConnectionSocket = Duplex & { [CONNECTION]?: Connection };

function connectionOf(socket: Duplex): Connection {
  return (socket as ConnectionSocket)[CONNECTION] as Connection;
}

/** The response in progress on a connection, if there is one. */
export function answeringOn(socket: Duplex): Response | undefined {
  return connectionOf(socket).answering;
}

/**
 * The open connections of this process, and the order of the requests on each of them.
 *
 * - Requests of one connection are served one after the other. A client that sends many requests ahead (pipelining) and
 *   does not read holds one answer in memory instead of many. More than MAX_PIPELINED_REQUESTS end the connection.
 * - A request with `Upgrade` that is served as ordinary HTTP ends the connection (see `upgrades.ts`), and so does
 *   request number MAX_REQUESTS_PER_CONNECTION. Its answer says `Connection: close`; what arrives behind it is
 *   ignored.
 * - A connection on which a request was refused is not read for REFUSAL_PAUSE_MS.
 * - Up to SPARE_CONNECTIONS connections beyond MAX_CONNECTIONS get one answer each, then they are closed. The answer is
 *   503, except to health checks and metrics. Connections beyond these are dropped.
 * - A connection whose client takes nothing of its answer for WRITE_TIMEOUT_MS is cut.
 */
export class Connections {
  private readonly log = new Logger(Connections.name);
  private readonly open = new Set<Socket>();
  private readonly spare = new Set<Socket>();
  private closesIdle = false;
  private dropped = 0;

  constructor(
    server: Server,
    private readonly inFlight: RequestsInFlight,
    { maxConnections, writeTimeoutMs }: ConnectionLimits,
  ) {
    server.timeout = writeTimeoutMs;
    server.on('connection', (socket) => {
      // Not `server.maxConnections`: with WEB_CONCURRENCY the process would hand the connection back to its group,
      // which would offer it again without end.
      if (this.open.size >= maxConnections + SPARE_CONNECTIONS) {
        socket.destroy();
        this.warnOfDropped();
        return;
      }
      const connection: Connection = {
        answering: undefined,
        latest: undefined,
        waiting: [],
        arrived: 0,
        hasAnswered: false,
        bytesRead: 0,
        isEnding: false,
        isFlooded: false,
        hasFailed: false,
      };
      (socket as ConnectionSocket)[CONNECTION] = connection;
      this.open.add(socket);
      socket.once('close', () => {
        this.open.delete(socket);
        this.spare.delete(socket);
        connection.waiting = [];
      });
      if (this.open.size > maxConnections) this.serveOnce(socket, connection);
    });
    server.on('timeout', closeUnlessServed);
  }

  /** Calls `begin` when the earlier requests of the connection have been answered; usually at once. */
  arrive(request: Request, response: Response, begin: () => void): void {
    const connection = connectionOf(request.socket);
    if (connection.isEnding) return;
    connection.latest = response;
    if (++connection.arrived >= MAX_REQUESTS_PER_CONNECTION || request.headers.upgrade !== undefined) {
      connection.isEnding = true;
      response.shouldKeepAlive = false;
    }
    if (connection.answering === undefined) {
      connection.answering = response;
      begin();
      return;
    }
    connection.isFlooded = connection.waiting.length >= MAX_PIPELINED_REQUESTS;
    connection.isEnding ||= connection.isFlooded;
    connection.waiting.push(() => {
      connection.answering = response;
      begin();
    });
  }

  /**
   * Ends a connection on which nothing more can be read, because the parser has failed. Earlier requests are answered
   * first. Later calls for the same connection change nothing.
   *
   * @param refuse answers the request whose body is broken, in its turn; called only if that request has not begun
   * @param finish answers bytes that are no request, and closes the connection; called only if no body is broken and no
   *   earlier answer already ends the connection
   * @returns the request whose body is broken, if it has begun: its handler answers, or has answered
   */
  fail(
    socket: Duplex,
    refuse: (request: Request, response: Response) => void,
    finish: () => void,
  ): Request | undefined {
    const connection = connectionOf(socket);
    const { answering, latest, waiting, isEnding } = connection;
    if (connection.hasFailed) return undefined;
    connection.hasFailed = true;
    connection.isEnding = true;
    if (latest === undefined || latest.req.complete) {
      if (answering === undefined) finish();
      else if (!isEnding) waiting.push(finish);
      return undefined;
    }
    latest.shouldKeepAlive = false;
    if (answering === undefined || latest === answering) return latest.req;
    waiting[waiting.length - 1] = () => {
      connection.answering = latest;
      refuse(latest.req, latest);
    };
    return undefined;
  }

  /**
   * Decides whether a request that has begun is served; if so, it is in flight from then on. If not, the caller must
   * answer 503.
   */
  admits(request: Request, response: Response): boolean {
    const { context, socket, url } = request;
    const { isFlooded, waiting } = connectionOf(socket);
    // The request beyond MAX_PIPELINED_REQUESTS is refused behind all requests before it.
    const isLast = isFlooded && waiting.length === 0;
    const isSpare = this.spare.size > 0 && this.spare.has(socket);
    if (isLast || isSpare) response.shouldKeepAlive = false;
    if (isLast || (isSpare && !isExempt(url))) {
      context.isRefused = true;
      return false;
    }
    return this.inFlight.admit(request);
  }

  /**
   * Must be called when the response of a request that has begun is over. Starts the next request of the connection.
   */
  leave({ socket, context }: Request, response: Response): void {
    context.isOver = true;
    this.inFlight.release(context);
    const connection = connectionOf(socket);
    if (connection.answering !== response) return;
    connection.answering = undefined;
    connection.hasAnswered = true;
    connection.bytesRead = socket.bytesRead;
    // The response closed the connection, so the requests behind it are not served.
    if (!socket.writable) return;
    const next = connection.waiting.shift();
    if (next !== undefined) {
      next();
    } else if (this.closesIdle || connection.isEnding) {
      socket.destroy();
    } else if (context.isRefused) {
      // Answering clients that retry without waiting would steal time from admitted requests.
      socket.pause();
      setTimeout(() => socket.resume(), REFUSAL_PAUSE_MS).unref();
    }
  }

  /** The requests that have begun and are not answered yet. */
  unanswered(): Request[] {
    return [...this.open].flatMap((socket) => connectionOf(socket).answering?.req ?? []);
  }

  /** Closes the idle connections now, and each other connection when its requests are answered. */
  closeIdle(): void {
    this.closesIdle = true;
    for (const socket of this.open) {
      const { answering, bytesRead } = connectionOf(socket);
      // Not `server.closeIdleConnections()`: it cuts answers that the client has not taken completely.
      if (answering === undefined && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  /** Closes all connections now, also those that a listener of `upgrade` has taken over. */
  closeAll(): void {
    // Not `server.closeAllConnections()`, which leaves those of `upgrade` open.
    for (const socket of this.open) socket.destroy();
  }

  private serveOnce(socket: Socket, connection: Connection): void {
    this.spare.add(socket);
    const timer = setTimeout(() => {
      if (connection.answering === undefined) socket.destroy();
    }, SPARE_CONNECTION_MS);
    timer.unref();
    socket.once('close', () => clearTimeout(timer));
  }

  private warnOfDropped(): void {
    if (this.dropped++ > 0) return;
    setTimeout(() => {
      this.log.warn(`Dropped ${this.dropped} connections beyond MAX_CONNECTIONS.`);
      this.dropped = 0;
    }, WARNING_INTERVAL_MS).unref();
  }
}

/**
 * Listener of the server's `timeout` event: nothing was sent or received for WRITE_TIMEOUT_MS, or for
 * KEEP_ALIVE_TIMEOUT_MS on an idle connection. Closes the connection if its client does not take its answer, or if it
 * is idle. Keeps it while a request arrives, which has time-outs of its own, and while a handler works.
 */
function closeUnlessServed(socket: Socket): void {
  const { answering, hasAnswered } = connectionOf(socket);
  if (socket.writableLength > 0 || (answering === undefined && hasAnswered)) {
    if (answering !== undefined) answering.req.context.isCut = true;
    socket.destroy();
  } else {
    socket.setTimeout(socket.timeout ?? 0);
  }
}
