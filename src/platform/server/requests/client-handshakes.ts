import type { Request } from 'express';

const requests = new WeakMap<object, Request>();

/** Remembers the handshake request of a gateway's client. */
export function rememberHandshake(client: object, request: Request): void {
  requests.set(client, request);
}

/** The handshake request of a gateway's client; undefined for a client that the platform has not seen. */
export function handshakeOf(client: unknown): Request | undefined {
  return typeof client === 'object' && client !== null ? requests.get(client) : undefined;
}
