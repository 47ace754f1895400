import type { Request } from 'express';

const requests = new WeakMap<object, Request>();

/** Remembers the request by which a client of a gateway has connected. */
export function rememberHandshake(client: object, request: Request): void {
  requests.set(client, request);
}

/** The request by which a client of a gateway has connected; undefined for a client that the platform has not seen. */
export function handshakeOf(client: unknown): Request | undefined {
  return typeof client === 'object' && client !== null ? requests.get(client) : undefined;
}
