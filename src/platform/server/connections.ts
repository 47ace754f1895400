import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';
import {
  MAX_PIPELINED_REQUESTS,
  REFUSAL_PAUSE_MS,
  SPARE_CONNECTION_MS,
  SPARE_CONNECTIONS,
  WARNING_INTERVAL_MS,
} from './server-limits.js';
import { canJoinWrites, joinWrites } from '../fast-paths/joined-writes.js';
import type { RequestContext } from './request-context.js';

/** What is said to a request for which there is no room. */
export const OVERLOADED = new ApiError(UNAVAILABLE, 'The service has more requests than it can answer. Try again.', {
  'Retry-After': '1',
});

/** What is served also when nothing else is: by it others judge the process. */
const EXEMPT_PATH = /^\/(health\/(live|ready)|metrics)(\?|$)/;

/** What the server knows of a connection beside Node. */
interface Connection {
  /** The answer that is on its way; the next request of the connection begins when it is over. */
  answering: Response | undefined;
  /** Requests that came before the answer to an earlier one, in their order. */
  waiting: (() => void)[];
  /** Whether a request has been answered on it. */
  hasAnswered: boolean;
  /** Bytes that had been read from it when its last answer was over. */
  bytesRead: number;
  /** Whether no further request of it is looked at. */
  isEnding: boolean;
}

const CONNECTION = Symbol('connection');

type ConnectionSocket = Socket & { [CONNECTION]?: Connection };

/**
 * What one process takes on at a time, and what it refuses: connections, requests in flight, requests that a client sends
 * ahead, and clients that do not take their answers.
 *
 * - A request is in flight from its beginning until its answer is made, the time that its body needs to arrive excepted:
 *   a slow client takes nobody's place. With `maxRequestsInFlight` of them, one more is refused at once: when it begins, or
 *   when its body has arrived.
 * - A connection on which a request was refused is not read from for `REFUSAL_PAUSE_MS`.
 * - Requests of one connection are served one after the other, as HTTP answers them, so that a client that does not read
 *   holds one answer in memory and not hundreds.
 * - A connection beyond `maxConnections` is closed after one answer, and that is a refusal unless its request is for health
 *   or metrics. There are `SPARE_CONNECTIONS` of these; others are dropped.
 */
export class Connections {
  private readonly log = new Logger(Connections.name);
  private readonly open = new Set<ConnectionSocket>();
  private readonly spare = new Set<Socket>();
  private readonly maxInFlight: number;
  private inFlight = 0;
  private closesIdle = false;
  private dropped = 0;

  constructor(server: Server, { maxConnections, maxRequestsInFlight, writeTimeoutMs, fastPaths }: Config) {
    const joinsWrites = fastPaths.includes('joined-writes') && canJoinWrites();
    this.maxInFlight = maxRequestsInFlight;
    server.timeout = writeTimeoutMs;
    server.on('connection', (socket: ConnectionSocket) => {
      // Not `server.maxConnections`: a process of a group would hand the connection back, to be offered again without end.
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
      if (joinsWrites) joinWrites(socket);
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

  /** Calls `begin` when the requests before this one on its connection have been answered: at once as a rule. */
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

  /** Must be called when the response of a request that has begun is over. */
  leave({ socket, context }: Request, response: Response): void {
    context.isOver = true;
    this.release(context);
    const connection = (socket as ConnectionSocket)[CONNECTION] as Connection;
    if (connection.answering !== response) return;
    connection.answering = undefined;
    connection.hasAnswered = true;
    connection.bytesRead = socket.bytesRead;
    // An answer that ended the connection has ended what waits on it.
    if (!socket.writable) return;
    const next = connection.waiting.shift();
    if (next !== undefined) {
      next();
    } else if (this.closesIdle) {
      socket.destroy();
    } else if (context.isRefused) {
      // Refusing over and over who does not wait would cost those in flight the time that they need.
      socket.pause();
      setTimeout(() => socket.resume(), REFUSAL_PAUSE_MS).unref();
    }
  }

  /** Whether the request can be served; from then on it is in flight. */
  admits({ context, socket, url }: Request, response: Response): boolean {
    const { isEnding, waiting } = (socket as ConnectionSocket)[CONNECTION] as Connection;
    // The one that was sent too far ahead, behind all that were not.
    const isLast = isEnding && waiting.length === 0;
    const isSpare = this.spare.size > 0 && this.spare.has(socket);
    if (isLast || isSpare) response.shouldKeepAlive = false;
    const hasRoom = this.inFlight < this.maxInFlight && !isSpare;
    if (!isLast && (hasRoom || EXEMPT_PATH.test(url))) {
      this.enter(context);
      return true;
    }
    context.isRefused = true;
    return false;
  }

  /** The request needs no more work: another may take its place. */
  release(context: RequestContext): void {
    if (context.isInFlight) {
      context.isInFlight = false;
      this.inFlight--;
    }
  }

  /**
   * Reads what is slow to arrive; meanwhile the request is not in flight.
   *
   * @throws ApiError OVERLOADED when there is no room for the request afterwards, and what `read` throws
   */
  async waitFor<Result>({ context, url }: Request, read: () => Promise<Result>): Promise<Result> {
    this.release(context);
    const result = await read();
    if (context.isOver) return result;
    if (this.inFlight >= this.maxInFlight && !EXEMPT_PATH.test(url)) {
      context.isRefused = true;
      throw OVERLOADED;
    }
    this.enter(context);
    return result;
  }

  /** The requests that have begun and whose answers are not over. */
  unanswered(): Request[] {
    return [...this.open].flatMap((socket) => socket[CONNECTION]?.answering?.req ?? []);
  }

  /** Whether no connection is open. */
  get isEmpty(): boolean {
    return this.open.size === 0;
  }

  /** Closes the connections on which no request is on its way; from then on each one when its answers are over. */
  closeIdle(): void {
    this.closesIdle = true;
    for (const socket of this.open) {
      const { answering, bytesRead } = socket[CONNECTION] as Connection;
      // Not `server.closeIdleConnections()`, which cuts an answer whose client has not yet taken all of it.
      if (answering === undefined && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  private enter(context: RequestContext): void {
    context.isInFlight = true;
    this.inFlight++;
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
 * Nothing has moved on a connection for a while: `writeTimeoutMs`, or `keepAliveTimeout` when it is idle. It is closed if its
 * client does not take its answer, or sends no further request; a request that has not arrived has time-outs of its own, and a
 * handler that works is waited for.
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
