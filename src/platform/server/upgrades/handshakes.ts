import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ApiError } from '../../errors/api-error.js';
import { toApiError } from '../../errors/error.filter.js';

/** Decides which clients may connect to gateways. */
export interface HandshakeGuard {
  /** Whether a gateway answers an HTTP request itself, such as the long polling of socket.io, so the guard must admit it. */
  answers(request: Request): boolean;
  /**
   * Called with each WebSocket handshake, and with each HTTP request that a gateway answers itself.
   *
   * @throws ApiError to answer instead
   */
  admit(request: Request): unknown;
}

/** The server's steps before and after a listener of a module gets a request. */
export interface HandshakeSteps {
  /** Waits for the answers to earlier requests of the connection, begins the request, and calls `serve`. */
  enter(request: Request, response: Response, serve: () => void): void;
  /** Whether the request may be served. If not, answers it. */
  admits(request: Request, response: Response): boolean;
  refuse(request: Request, response: Response, error: ApiError): void;
  /** Stops counting the request as in flight. */
  release(request: Request): void;
  /** Reports an answer to the observer. */
  report(request: Request, response: Response): void;
  /** To be called when the connection is closed. */
  leave(request: Request, response: Response): void;
}

/**
 * Intercepts the server's events `upgrade` and `request`, for which every WebSocket library registers listeners. These get
 * a request only if it is valid, within the limits and admitted by the guard. Otherwise it is answered as HTTP. A server
 * without listeners of modules stays unchanged.
 */
export class Handshakes {
  private readonly log = new Logger(Handshakes.name);

  /** Without a guard every handshake is refused. */
  guard: HandshakeGuard | undefined;

  /** Emits an event to the listeners. */
  private readonly pass: (event: string, ...parameters: unknown[]) => boolean;

  /** Must be created after the server's own listeners are registered. */
  constructor(
    private readonly server: Server,
    private readonly steps: HandshakeSteps,
  ) {
    this.pass = server.emit.bind(server);
    const watch = (event: string): void => {
      if (event !== 'upgrade' && event !== 'request') return;
      server.off('newListener', watch);
      this.intercept();
    };
    server.on('newListener', watch);
  }

  private intercept(): void {
    this.server.emit = (event: string, ...parameters: unknown[]) => {
      const [request, other] = parameters as [Request, unknown];
      if (event === 'upgrade') this.upgrade(request, other as Socket, parameters);
      else if (event === 'request') this.request(request, other as Response, parameters);
      else return this.pass(event, ...parameters);
      return true;
    };
  }

  private request(request: Request, response: Response, parameters: unknown[]): void {
    this.begin(request, response, () => this.pass('request', ...parameters), this.guard?.answers(request) ?? false);
  }

  /** Handles `upgrade`. Node has detached the socket from its parser, so a refusal needs a response made here. */
  private upgrade(request: Request, socket: Socket, parameters: unknown[]): void {
    const response = new ServerResponse(request) as unknown as Response;
    // An 'error' event without a listener would end the process.
    socket.on('error', () => socket.destroy());
    response.assignSocket(socket);
    response.on('finish', () => {
      response.detachSocket(socket);
      response.emit('close');
    });
    const serve = (): void => {
      response.detachSocket(socket);
      this.reportSwitch(request, response, socket);
      this.pass('upgrade', ...parameters);
    };
    this.begin(request, response, serve, true);
  }

  private begin(request: Request, response: Response, serve: () => void, isGuarded: boolean): void {
    const admit = async (): Promise<void> => {
      try {
        if (this.guard === undefined) throw new Error('No guard decides about handshakes.');
        await this.guard.admit(request);
      } catch (error) {
        const refusal = toApiError(error);
        if (refusal.definition.status === 500) this.log.error(error, request.context);
        this.steps.refuse(request, response, refusal);
        return;
      }
      // A WebSocket may stay open for hours, so it does not count as a request in flight.
      this.steps.release(request);
      if (!request.socket.destroyed) serve();
    };
    this.steps.enter(request, response, () => {
      if (!this.steps.admits(request, response)) return;
      if (isGuarded) void admit();
      else serve();
    });
  }

  /** Reports a handshake when the gateway accepts it, or when the connection closes before that. */
  private reportSwitch(request: Request, response: Response, socket: Socket): void {
    const write = socket.write.bind(socket);
    let isSwitched = false;
    socket.write = ((...parameters: Parameters<typeof write>) => {
      Reflect.deleteProperty(socket, 'write');
      if (String(parameters[0]).startsWith('HTTP/1.1 101')) {
        isSwitched = true;
        response.removeAllListeners('close');
        response.writeHead(101);
        request.context.answeredAt = performance.now();
        request.context.isSentEarly = true;
        this.steps.report(request, response);
      }
      return write(...parameters);
    }) as typeof write;
    socket.once('close', () => {
      if (isSwitched) this.steps.leave(request, response);
      else response.emit('close');
    });
  }
}
