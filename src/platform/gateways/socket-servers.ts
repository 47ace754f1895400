import type { Request } from 'express';

/*
 * The members of ws, socket.io and their adapters that the platform uses. The packages are not imported: an application
 * without gateways does not have them. `test/platform/gateways` tests against both.
 */

/** A server of ws, as WsAdapter creates it. */
export interface ServerOfWs {
  /** The only path that is served. WsAdapter sets it. */
  readonly path: string;
  readonly clients?: ReadonlySet<ClientOfWs>;
  handleUpgrade(...parameters: unknown[]): void;
}

export interface ClientOfWs {
  readonly readyState: number;
  send(text: string): void;
  close(code: number, reason: string): void;
  once(event: 'close', listener: () => void): void;
}

/** A namespace of socket.io, or its server, which stands for the namespace `/`. */
export interface NamespaceOfSocketIo {
  use(middleware: (client: ClientOfSocketIo, next: (error?: Error) => void) => void): unknown;
}

export interface ServerOfSocketIo extends NamespaceOfSocketIo {
  readonly engine: { readonly clientsCount: number };
  httpServer?: unknown;
  path(): string;
  of(name: string): NamespaceOfSocketIo;
}

export interface ClientOfSocketIo {
  /** The request of the handshake. */
  readonly request: Request;
  emit(event: string, data: unknown): void;
  disconnect(closesConnection: boolean): void;
  once(event: 'disconnect', listener: () => void): void;
}

export type Client = ClientOfWs | ClientOfSocketIo;

export function isWs(server: unknown): server is ServerOfWs {
  return hasMethod(server, 'handleUpgrade') && typeof server['path'] === 'string';
}

export function isSocketIo(server: unknown): server is NamespaceOfSocketIo | ServerOfSocketIo {
  return hasMethod(server, 'use') && (isServerOfSocketIo(server) || isServerOfSocketIo(server['server']));
}

export function isServerOfSocketIo(server: unknown): server is ServerOfSocketIo {
  return hasMethod(server, 'of') && hasMethod(server, 'path') && typeof server['engine'] === 'object';
}

export function isClientOfWs(client: Client): client is ClientOfWs {
  return 'readyState' in client && typeof client.readyState === 'number';
}

function hasMethod(value: unknown, name: string): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[name] === 'function';
}
