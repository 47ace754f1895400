import type { Client } from 'pg';
import { destroySocket } from '../statements/pg-internals.js';

/** Ends a client without waiting for PostgreSQL: sends Terminate, then closes the socket. */
export function hangUp(client: Client | undefined): void {
  if (client === undefined) return;
  client.end().catch(() => undefined);
  // Deferred, so that the socket sends the message of `end` first.
  setImmediate(() => destroySocket(client));
}
