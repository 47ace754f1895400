import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../../config.js';
import { isExempt, type RequestsInFlight } from './requests-in-flight.js';
import {
  MAX_PIPELINED_REQUESTS,
  REFUSAL_PAUSE_MS,
  SPARE_CONNECTION_MS,
  SPARE_CONNECTIONS,
  WARNING_INTERVAL_MS,
} from './server-limits.js';

/** What the server remembers about a connection. */
interface Connection {
  /** The response in progress. The next request of the connection starts when it is over. */
  answering: Response | undefined;
  /** Starts the requests that arrived during an earlier one, in their order. */
  waiting: (() => void)[];
  /** At least one request has been answered. */
  hasAnswered: boolean;
  /** `socket.bytesRead` when the last response was over; a larger value means that another request is arriving. */
  bytesRead: number;
  /** Further requests are ignored, because too many were sent ahead. */
  isEnding: boolean;
}

const CONNECTION = Symbol('connection');

type ConnectionSocket = Socket & { [CONNECTION]?: Connection };

/**
 * The open connections of this process, and the order of the requests on each of them.
 *
 * - Requests of one connection are served one after the other. A client that sends many requests ahead (pipelining) and
 *   does not read holds one answer in memory instead of many. More than MAX_PIPELINED_REQUESTS end the connection.
 * - A connection on which a request was refused is not read for REFUSAL_PAUSE_MS.
 * - Up to SPARE_CONNECTIONS connections beyond MAX_CONNECTIONS get one answer each, then they are closed. The answer is
 *   503, except to health checks and metrics. Connections beyond these are dropped.
 * - A connection whose client takes nothing of its answer for WRITE_TIMEOUT_MS is cut.
 */
export class Connections {
  private readonly log = new Logger(Connections.name);
  private readonly open = new Set<ConnectionSocket>();
  private readonly spare = new Set<Socket>();
  private closesIdle = false;
  private dropped = 0;

  constructor(
    server: Server,
    private readonly inFlight: RequestsInFlight,
    { maxConnections, writeTimeoutMs }: Pick<Config, 'maxConnections' | 'writeTimeoutMs'>,
  ) {
    server.timeout = writeTimeoutMs;
    server.on('connection', (socket: ConnectionSocket) => {
      // Not `server.maxConnections`: with WEB_CONCURRENCY the process would hand the connection back to its group,
      // which would offer it again without end.
      if (this.open.size >= maxConnections + SPARE_CONNECTIONS) {
        socket.destroy();
        this.warnOfDropped();
        return;
      }
      const connection: Connection = {
        answering: undefined,
        waiting: [],
        hasAnswered: false,
        bytesRead: 0,
        isEnding: false,
      };
      socket[CONNECTION] = connection;
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
    const connection = (request.socket as ConnectionSocket)[CONNECTION] as Connection;
    if (connection.isEnding) return;
    if (connection.answering === undefined) {
      connection.answering = response;
      begin();
      return;
    }
    connection.isEnding = connection.waiting.length >= MAX_PIPELINED_REQUESTS;
    connection.waiting.push(() => {
      connection.answering = response;
      begin();
    });
  }

  /**
   * Decides whether a request that has begun is served; if so, it is in flight from then on. If not, the caller must
   * answer 503.
   */
  admits(request: Request, response: Response): boolean {
    const { context, socket, url } = request;
    const { isEnding, waiting } = (socket as ConnectionSocket)[CONNECTION] as Connection;
    // The request beyond MAX_PIPELINED_REQUESTS is refused behind all requests before it.
    const isLast = isEnding && waiting.length === 0;
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
    const connection = (socket as ConnectionSocket)[CONNECTION] as Connection;
    if (connection.answering !== response) return;
    connection.answering = undefined;
    connection.hasAnswered = true;
    connection.bytesRead = socket.bytesRead;
    // The response closed the connection, so the requests behind it are not served.
    if (!socket.writable) return;
    const next = connection.waiting.shift();
    if (next !== undefined) {
      next();
    } else if (this.closesIdle) {
      socket.destroy();
    } else if (context.isRefused) {
      // Answering clients that retry without waiting would steal time from admitted requests.
      socket.pause();
      setTimeout(() => socket.resume(), REFUSAL_PAUSE_MS).unref();
    }
  }

  /** The requests that have begun and are not answered yet. */
  unanswered(): Request[] {
    return [...this.open].flatMap((socket) => socket[CONNECTION]?.answering?.req ?? []);
  }

  /** Closes the idle connections now, and each other connection when its requests are answered. */
  closeIdle(): void {
    this.closesIdle = true;
    for (const socket of this.open) {
      const { answering, bytesRead } = socket[CONNECTION] as Connection;
      // Not `server.closeIdleConnections()`: it cuts answers that the client has not taken completely.
      if (answering === undefined && socket.bytesRead === bytesRead) socket.destroy();
    }
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
function closeUnlessServed(socket: ConnectionSocket): void {
  const { answering, hasAnswered } = socket[CONNECTION] as Connection;
  if (socket.writableLength > 0 || (answering === undefined && hasAnswered)) {
    if (answering !== undefined) answering.req.context.isCut = true;
    socket.destroy();
  } else {
    socket.setTimeout(socket.timeout ?? 0);
  }
}
