import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ApiError } from '../../errors/api-error.js';
import { serviceUnavailable } from '../../errors/service-unavailable.js';
import { ReadAhead } from './read-ahead.js';
import { isExempt, type RequestsInFlight } from '../requests/requests-in-flight.js';
import {
  MAX_REQUESTS_PER_CONNECTION,
  REFUSAL_PAUSE_MS,
  SPARE_CONNECTION_MS,
  SPARE_CONNECTIONS,
  WARNING_INTERVAL_MS,
} from '../requests/server-limits.js';

/** The members of `Config` that apply to connections. */
interface ConnectionLimits {
  readonly maxConnections: number;
  readonly writeTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/** The state of one connection. */
interface Connection {
  /** The response in progress. When it is over, the next request of the connection starts. */
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
  /** No further request is served; the connection is closed after the answers to the earlier ones. */
  isEnding: boolean;
  /** The parser has failed. */
  hasFailed: boolean;
  /** Reading is paused. */
  isPaused: boolean;
  /** Cuts the connection: a request timed out while reading was paused. */
  cutLate: (() => void) | undefined;
  /** Memory in bytes that `ReadAhead` counts for this connection's requests. */
  readAhead: number;
}

/** The 503 of a request on a connection beyond MAX_CONNECTIONS. */
const TOO_MANY_CONNECTIONS = serviceUnavailable('connections');

const CONNECTION = Symbol('connection');

type ConnectionSocket = Duplex & { [CONNECTION]?: Connection };

function connectionOf(socket: Duplex): Connection {
  return (socket as ConnectionSocket)[CONNECTION] as Connection;
}

function newConnection(): Connection {
  return {
    answering: undefined,
    latest: undefined,
    waiting: [],
    arrived: 0,
    hasAnswered: false,
    bytesRead: 0,
    isEnding: false,
    hasFailed: false,
    isPaused: false,
    cutLate: undefined,
    readAhead: 0,
  };
}

/** The response in progress on a connection, if there is one. */
export function answeringOn(socket: Duplex): Response | undefined {
  return connectionOf(socket).answering;
}

/**
 * The open connections of this process, and the order of the requests on each of them.
 *
 * - Requests of one connection are served one after the other. So a client that sends many requests ahead (pipelining)
 *   and does not read occupies memory for one answer only.
 * - While requests of a connection wait for an earlier one, the connection is not read. So it holds the requests of one
 *   read of 64 KiB at most; further ones stay in the buffers of the operating systems. MAX_READ_AHEAD_BYTES bounds the
 *   waiting requests of all connections. The time-outs of requests do not run while reading is paused.
 * - No client is blamed for a process that was stopped or busy: before a time-out cuts a connection, what has arrived on it
 *   is read.
 * - A request with `Upgrade` that is served as ordinary HTTP ends the connection (see `upgrades.ts`), and so does
 *   request number MAX_REQUESTS_PER_CONNECTION. Its answer says `Connection: close`; later requests are ignored.
 * - After a request was refused for overload, its connection is not read for REFUSAL_PAUSE_MS.
 * - Up to SPARE_CONNECTIONS connections beyond MAX_CONNECTIONS get one answer each, then they are closed. The answer is
 *   503, except to health checks and metrics. Further connections are dropped.
 * - A connection whose client reads nothing of its answer for WRITE_TIMEOUT_MS is cut.
 */
export class Connections {
  private readonly log = new Logger(Connections.name);
  private readonly open = new Set<Socket>();
  private readonly spare = new Set<Socket>();
  private readonly readAhead = new ReadAhead();
  private closesIdle = false;
  private dropped = 0;
  private cut = 0;
  /** Connections that were dropped beyond MAX_CONNECTIONS since the start. */
  droppedInAll = 0;

  constructor(
    server: Server,
    private readonly inFlight: RequestsInFlight,
    private readonly limits: ConnectionLimits,
  ) {
    server.timeout = limits.writeTimeoutMs;
    server.on('connection', (socket) => this.accept(socket));
    server.on('timeout', closeUnlessServed);
  }

  /** Open connections at this moment, the spare ones included. */
  get size(): number {
    return this.open.size;
  }

  /** Calls `begin` when the earlier requests of the connection have been answered; usually at once. */
  arrive(request: Request, response: Response, begin: () => void): void {
    const connection = connectionOf(request.socket);
    if (connection.isEnding) {
      this.holdBack(request, connection);
      return;
    }
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
    connection.waiting.push(() => {
      connection.answering = response;
      begin();
    });
    this.holdBack(request, connection);
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
    const { answering, latest, waiting, isEnding: wasEnding } = connection;
    if (connection.hasFailed) return undefined;
    connection.hasFailed = true;
    connection.isEnding = true;
    const isBody = latest !== undefined && !latest.req.complete;
    if (!isBody) {
      if (answering === undefined) finish();
      else if (!wasEnding) waiting.push(finish);
      return undefined;
    }
    latest.shouldKeepAlive = false;
    const hasBegun = answering === undefined || answering === latest;
    if (hasBegun) return latest.req;
    // Takes the place of the function that would serve the request.
    waiting[waiting.length - 1] = () => {
      connection.answering = latest;
      refuse(latest.req, latest);
    };
    return undefined;
  }

  /**
   * Admits a request that has begun, which is then in flight; or returns the 503 with which the caller must answer.
   */
  admit(request: Request, response: Response): ApiError | undefined {
    const { context, socket, url } = request;
    const isSpare = this.spare.size > 0 && this.spare.has(socket);
    if (isSpare) response.shouldKeepAlive = false;
    if (isSpare && !isExempt(url)) {
      context.isRefused = true;
      return TOO_MANY_CONNECTIONS;
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
    // The response closed the connection, so its later requests are not served.
    if (!socket.writable) return;
    const next = connection.waiting.shift();
    if (next !== undefined) {
      if (connection.waiting.length === 0) this.readOn(socket, connection);
      next();
    } else if (this.closesIdle || connection.isEnding) {
      socket.destroy();
    } else if (context.isRefused) {
      // Answering clients that retry without waiting would steal time from admitted requests.
      pause(socket, connection);
      setTimeout(() => this.readOn(socket, connection), REFUSAL_PAUSE_MS).unref();
    }
  }

  /**
   * Must be called when Node's time-out of a request that is arriving has passed. Calls `cut` unless the request has
   * arrived by then but was not read yet. If the connection was not read during that time, the request gets another
   * REQUEST_TIMEOUT_MS from the next read on.
   */
  timesOut(socket: Duplex, cut: () => void): void {
    const connection = connectionOf(socket);
    if (connection.isPaused) connection.cutLate = cut;
    else setImmediate(cutUnlessArrived(socket, connection, cut));
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
      // Not `server.closeIdleConnections()`, which cuts answers that are not sent completely.
      if (answering === undefined && socket.bytesRead === bytesRead) socket.destroy();
    }
  }

  /** Closes all connections now, also those that a listener of `upgrade` has taken over. */
  closeAll(): void {
    // Not `server.closeAllConnections()`, which leaves those of `upgrade` open.
    for (const socket of this.open) socket.destroy();
  }

  private accept(socket: Socket): void {
    const { maxConnections } = this.limits;
    // Not `server.maxConnections`: with WEB_CONCURRENCY the process would hand the connection back to its group,
    // which would offer it again without end.
    if (this.open.size >= maxConnections + SPARE_CONNECTIONS) {
      socket.destroy();
      this.dropped++;
      this.droppedInAll++;
      this.warn();
      return;
    }
    const connection = newConnection();
    (socket as ConnectionSocket)[CONNECTION] = connection;
    this.open.add(socket);
    socket.once('close', () => {
      this.open.delete(socket);
      this.spare.delete(socket);
      connection.waiting = [];
      this.readAhead.release(connection.readAhead);
      connection.readAhead = 0;
    });
    // Node resumes reading at the end of each request and for each body.
    socket.on('resume', () => {
      if (connection.isPaused) stopReading(socket);
    });
    if (this.open.size > maxConnections) this.serveOnce(socket, connection);
  }

  private serveOnce(socket: Socket, connection: Connection): void {
    this.spare.add(socket);
    const cut = (): void => {
      if (connection.answering === undefined) socket.destroy();
    };
    const timer = setTimeout(() => setImmediate(cut), SPARE_CONNECTION_MS);
    timer.unref();
    socket.once('close', () => clearTimeout(timer));
  }

  /** Stops reading after a request that must wait or is ignored. Closes the connection if too little memory is left. */
  private holdBack(request: Request, connection: Connection): void {
    const { socket } = request;
    if (socket.destroyed) return;
    const bytes = this.readAhead.take(request);
    if (bytes === undefined) {
      connection.isEnding = true;
      socket.destroy();
      this.cut++;
      this.warn();
      return;
    }
    connection.readAhead += bytes;
    pause(socket, connection);
  }

  /** Resumes reading. */
  private readOn(socket: Socket, connection: Connection): void {
    this.readAhead.release(connection.readAhead);
    connection.readAhead = 0;
    connection.isPaused = false;
    // After a failure of the parser nothing is parsed, and after CONNECT nobody would consume the data.
    if (connection.hasFailed) return;
    socket.resume();
    const { cutLate } = connection;
    if (cutLate === undefined) return;
    connection.cutLate = undefined;
    // Node's own time-out fires once only.
    setTimeout(cutUnlessArrived(socket, connection, cutLate), this.limits.requestTimeoutMs).unref();
  }

  /** Logs connections that were dropped or cut, once in WARNING_INTERVAL_MS. */
  private warn(): void {
    if (this.dropped + this.cut > 1) return;
    setTimeout(() => {
      if (this.dropped > 0) this.log.warn(`Dropped ${this.dropped} connections beyond MAX_CONNECTIONS.`);
      if (this.cut > 0) this.log.warn(`Cut ${this.cut} connections, because too many requests were sent ahead.`);
      this.dropped = 0;
      this.cut = 0;
    }, WARNING_INTERVAL_MS).unref();
  }
}

/** Stops reading a connection until `readOn`. */
function pause(socket: Socket, connection: Connection): void {
  connection.isPaused = true;
  stopReading(socket);
}

function stopReading(socket: Socket): void {
  socket.pause();
  // Node's HTTP server stops at this event. `pause` does not emit it for a paused stream that is about to resume.
  socket.emit('pause');
}

/** Returns a function that calls `cut`, unless the request that is arriving now has arrived when it is called. */
function cutUnlessArrived(socket: Duplex, connection: Connection, cut: () => void): () => void {
  // The latest request if its body is incomplete, else the next one.
  const isBody = connection.latest?.req.complete === false;
  const late = isBody ? connection.arrived : connection.arrived + 1;
  return () => {
    const hasArrived =
      connection.arrived > late || (connection.arrived === late && connection.latest?.req.complete === true);
    if (!hasArrived && !socket.destroyed) cut();
  };
}

/**
 * Listener of the server's `timeout` event: nothing was sent or received for WRITE_TIMEOUT_MS, or for
 * KEEP_ALIVE_TIMEOUT_MS on an idle connection. Closes a connection that is idle or whose client does not read its answer.
 * Keeps it while a request arrives, which has time-outs of its own, and while a handler works.
 */
function closeUnlessServed(socket: Socket): void {
  const { bytesRead, writableLength } = socket;
  setImmediate(() => {
    const { answering, hasAnswered } = connectionOf(socket);
    const hasMoved = socket.bytesRead !== bytesRead || socket.writableLength !== writableLength;
    if (!hasMoved && (writableLength > 0 || (answering === undefined && hasAnswered))) {
      if (answering !== undefined) answering.req.context.isCut = true;
      socket.destroy();
    } else {
      socket.setTimeout(socket.timeout ?? 0);
    }
  });
}
