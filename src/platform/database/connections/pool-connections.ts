import type { Pool, PoolClient } from 'pg';
import { awaitsAnswer, destroySocket } from './pg-internals.js';

/**
 * Keeps unusable connections out of a pool: closes those that are released with an unanswered statement or an open
 * transaction, and can replace all connections that exist.
 */
export class PoolConnections {
  private readonly idle = new Set<PoolClient>();
  private readonly busy = new Set<PoolClient>();
  /** Busy connections that `replace` closes unless they are released in time. */
  private readonly suspects = new Set<PoolClient>();

  constructor(pool: Pool) {
    pool.on('acquire', (client) => {
      this.idle.delete(client);
      this.busy.add(client);
    });
    pool.on('release', (error: Error | undefined, client) => {
      this.busy.delete(client);
      this.suspects.delete(client);
      this.idle.add(client);
      // After an error the pool closes the connection itself. A connection that is ending leaves the pool.
      if (error === undefined && !isReusable(client)) {
        client.end().catch(() => undefined);
      }
    });
    pool.on('remove', (client) => {
      this.idle.delete(client);
      this.busy.delete(client);
      this.suspects.delete(client);
    });
  }

  /** Closes idle connections now, busy ones if not released within `graceMs`. */
  async replace(graceMs: number): Promise<void> {
    this.idle.forEach(destroySocket);
    this.busy.forEach((client) => this.suspects.add(client));
    await new Promise((over) => setTimeout(over, graceMs));
    this.suspects.forEach(destroySocket);
    this.suspects.clear();
  }
}

function isReusable(client: PoolClient): boolean {
  return !awaitsAnswer(client) && client.getTransactionStatus() === 'I';
}
