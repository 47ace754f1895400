import { Injectable, type OnModuleDestroy, type WebSocketAdapter } from '@nestjs/common';
import type { Request } from 'express';
import { IncomingMessage } from 'node:http';
import { filter, map, type Observable } from 'rxjs';
import { ApiKeyGuard } from '../auth/api-key.guard.js';
import { ApiError } from '../errors/api-error.js';
import { writeJson } from '../json/json-writer.js';
import { rememberHandshake } from '../server/requests/client-handshakes.js';
import { readMessage, withoutBigints } from './messages.js';
import { type Client, isClientOfWs, isServerOfSocketIo, isWs, type ServerOfWs } from './socket-servers.js';

/** Interval in ms at which the keys of connected clients are checked again. */
const CHECK_INTERVAL_MS = 1_000;

/** Close codes of RFC 6455, section 7.4.1. */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;

/** The members of WsAdapter that the platform uses. */
interface AdapterOfWs extends WebSocketAdapter {
  readonly messageParser?: { readonly name: string };
  setMessageParser?(parser: (message: unknown) => unknown): void;
}

/** The handshake request of a client, whose key must stay valid, and the scopes that the key needs. */
interface Admission {
  readonly request: Request;
  readonly scopes: readonly string[];
}

/**
 * The clients that are connected to gateways. If a gateway is not public, its clients are disconnected within
 * CHECK_INTERVAL_MS when their key is revoked or expires. Messages over ws are exact JSON in both directions, like bodies
 * over HTTP.
 */
@Injectable()
export class GatewayClients implements OnModuleDestroy {
  /** The scopes that closed servers require, by the server of ws or the namespace of socket.io. */
  private readonly closed = new Map<unknown, readonly string[]>();
  private readonly admitted = new Map<Client, Admission>();
  private timer: NodeJS.Timeout | undefined;
  private isChecking = false;

  constructor(private readonly guard: ApiKeyGuard) {}

  /** Closes a socket server to clients without a key that has these scopes. */
  close(server: unknown, scopes: readonly string[]): void {
    this.closed.set(server, scopes);
  }

  /**
   * Tracks the clients of an adapter.
   *
   * @param httpServer the server of the application
   */
  watch(adapter: AdapterOfWs, httpServer: unknown): void {
    const bindClientConnect = adapter.bindClientConnect.bind(adapter);
    const bindMessageHandlers = adapter.bindMessageHandlers.bind(adapter);
    const close = adapter.close.bind(adapter);
    adapter.bindClientConnect = (server: unknown, callback: (...parameters: unknown[]) => void): unknown =>
      bindClientConnect(server, (client: Client, ...more: unknown[]) => {
        if (this.connect(client, more, this.closed.get(server))) callback(client, ...more);
      });
    adapter.bindMessageHandlers = (client: Client, handlers, transform): unknown =>
      bindMessageHandlers(client, handlers, (answer: unknown) => answered(client, transform(answer)));
    adapter.close = (server: unknown): unknown => {
      if (isWs(server)) goAway(server);
      // Keeps socket.io from closing the HTTP server, which would end the requests of other clients; the platform drains it.
      if (isServerOfSocketIo(server) && server.httpServer === httpServer) server.httpServer = undefined;
      return close(server);
    };
    // A parser that the application has set stays.
    if (adapter.messageParser?.name === 'defaultMessageParser') adapter.setMessageParser?.(readMessage);
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** Registers a client. Returns false, and disconnects the client, if it must not connect. */
  private connect(client: Client, more: unknown[], scopes: readonly string[] | undefined): boolean {
    const request = isClientOfWs(client) ? more.find((value) => value instanceof IncomingMessage) : client.request;
    if (request !== undefined) rememberHandshake(client, request as Request);
    if (scopes === undefined || this.admitted.has(client)) return true;
    if (request === undefined) {
      disconnect(client);
      return false;
    }
    this.admitted.set(client, { request: request as Request, scopes });
    const forget = (): void => void this.admitted.delete(client);
    if (isClientOfWs(client)) client.once('close', forget);
    else client.once('disconnect', forget);
    this.timer ??= setInterval(() => void this.checkAll(), CHECK_INTERVAL_MS).unref();
    return true;
  }

  private async checkAll(): Promise<void> {
    if (this.isChecking) return;
    this.isChecking = true;
    await Promise.all([...this.admitted].map(([client, admission]) => this.check(client, admission)));
    this.isChecking = false;
  }

  private async check(client: Client, { request, scopes }: Admission): Promise<void> {
    try {
      await this.guard.recheck(request, scopes);
    } catch (error) {
      // While the database is unreachable, the key may still be valid.
      if (error instanceof ApiError && error.definition.status < 500) disconnect(client);
    }
  }
}

function disconnect(client: Client): void {
  if (isClientOfWs(client)) client.close(POLICY_VIOLATION, 'The API key is not valid.');
  else client.disconnect(true);
}

function goAway({ clients = new Set() }: ServerOfWs): void {
  for (const client of clients) client.close(GOING_AWAY, 'The server is shutting down.');
}

/** Sends the answers to a message, or converts them to a form that the adapter can send. */
function answered(client: Client, answers: Observable<unknown>): Observable<unknown> {
  if (!isClientOfWs(client)) return answers.pipe(map(withoutBigints));
  // The adapter would call JSON.stringify, which throws for a bigint, and the error would end the process.
  return answers.pipe(
    filter((answer) => {
      if (answer !== undefined && answer !== null && client.readyState === 1) client.send(writeJson(answer));
      return false;
    }),
  );
}
