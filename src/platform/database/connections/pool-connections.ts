import type { Pool, PoolClient } from 'pg';

/** What of a `pg` client its types do not tell. */
interface ClientInternals {
  /** False while a statement is not answered. */
  readonly readyForQuery?: boolean;
  readonly connection: { readonly stream: { destroy(): void } };
}

/**
 * Keeps connections that are of no use out of a pool: those that come back to it with a statement unanswered or a
 * transaction open are closed, and all that are there can be suspected and replaced.
 */
export class PoolConnections {
  private readonly idle = new Set<PoolClient>();
  private readonly busy = new Set<PoolClient>();
  /** Busy since before they were suspected. */
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
      // After an error the pool closes it by itself; and it drops a connection that is ending.
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

  /**
   * Breaks the connections that there are, for whoever was at their other end may be gone: idle ones at once, busy ones
   * unless they are given back within `graceMs`, which a connection without an other end is not.
   */
  async replace(graceMs: number): Promise<void> {
    this.idle.forEach(breakConnection);
    this.busy.forEach((client) => this.suspects.add(client));
    await new Promise((over) => setTimeout(over, graceMs));
    this.suspects.forEach(breakConnection);
    this.suspects.clear();
  }
}

function isReusable(client: PoolClient): boolean {
  return (client as unknown as ClientInternals).readyForQuery !== false && client.getTransactionStatus() === 'I';
}

/** Closes a connection without a word to its other end, which might not hear it. What is under way on it fails. */
export function breakConnection(client: PoolClient): void {
  (client as unknown as ClientInternals).connection.stream.destroy();
}
