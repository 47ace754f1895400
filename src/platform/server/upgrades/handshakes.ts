import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ApiError } from '../../errors/api-error.js';
import { toApiError } from '../../errors/error.filter.js';

/** Decides about the requests by which clients connect to gateways. */
export interface HandshakeGuard {
  /** Whether a request without `Upgrade`, or with one that nobody takes, is the guard's: as long polling of socket.io is. */
  answers(request: Request): boolean;
  /**
   * Called with each handshake of a WebSocket, and with each request that a gateway answers itself.
   *
   * @throws ApiError to answer instead
   */
  admit(request: Request): unknown;
}

/** What happens to a request before and after a listener of a module has it. */
export interface HandshakeSteps {
  /** Waits for the answers to earlier requests of the connection, begins the request, and calls `serve`. */
  enter(request: Request, response: Response, serve: () => void): void;
  /** Whether the request may be served. If not, it is answered. */
  admits(request: Request, response: Response): boolean;
  refuse(request: Request, response: Response, error: ApiError): void;
  /** The request no longer counts as in flight. */
  release(request: Request): void;
  /** Reports an answer to the observer. */
  report(request: Request, response: Response): void;
  /** The connection is closed. */
  leave(request: Request, response: Response): void;
}

/**
 * Stands before the listeners that modules add to the server's events `upgrade` and `request`, as every WebSocket library
 * does. They get a request only when it is valid, its connection has room, and the guard admits it. Any other one is
 * answered as HTTP. A server without such listeners is left as it is.
 */
export class Handshakes {
  private readonly log = new Logger(Handshakes.name);

  /** Without a guard every handshake is refused. */
  guard: HandshakeGuard | undefined;

  /** Passes an event on to the listeners. */
  private readonly pass: (event: string, ...parameters: unknown[]) => boolean;

  /** Create it behind the server's own listeners. */
  constructor(
    private readonly server: Server,
    private readonly steps: HandshakeSteps,
  ) {
    this.pass = server.emit.bind(server);
    const watch = (event: string): void => {
      if (event !== 'upgrade' && event !== 'request') return;
      server.off('newListener', watch);
      this.standBefore();
    };
    server.on('newListener', watch);
  }

  private standBefore(): void {
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

  /** Node has taken the socket from its parser by now, so the answer of a refused handshake is written by hand. */
  private upgrade(request: Request, socket: Socket, parameters: unknown[]): void {
    const response = new ServerResponse(request) as unknown as Response;
    // Without a listener an error of the socket would end the process.
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
      // What comes of it may last for hours.
      this.steps.release(request);
      if (!request.socket.destroyed) serve();
    };
    this.steps.enter(request, response, () => {
      if (!this.steps.admits(request, response)) return;
      if (isGuarded) void admit();
      else serve();
    });
  }

  /** Reports a handshake when the gateway accepts it, or when the connection is closed without that. */
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
