import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { processIdOf } from '../statements/pg-internals.js';
import type { ServicePool } from './service-pool.js';
import type { Execute, Statement } from '../statements/statement.js';

/** Interval in ms of the question which abandoned changes still wait. */
const CHECK_INTERVAL_MS = 1_000;

const WAITING: Statement = {
  name: 'abandoned_changes_waiting',
  text: `SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[]) AND wait_event = 'SyncRep'`,
};

/**
 * Changes without an answer in time whose commit may wait for a synchronous standby. PostgreSQL ends such a wait neither at
 * `statement_timeout` nor when the connection is closed. A new connection in the place of each would let connections grow
 * without bound, so each keeps its place in the pool until its wait has ended. At most half of the pool is kept; then
 * changes are refused, and the rest of the pool is left for reads.
 */
export class AbandonedChanges {
  private readonly clients = new Map<PoolClient, () => void>();
  private timer: NodeJS.Timeout | undefined;
  private checking = Promise.resolve();
  private isChecking = false;
  private readonly most: number;

  /** @param execute must fail when the answer does not come in time: the question may meet a connection that hangs */
  constructor(
    private readonly pool: ServicePool,
    private readonly execute: Execute,
  ) {
    this.most = Math.floor(pool.options.max / 2);
  }

  /**
   * Whether half of the pool's connections are kept; nothing may be sent then. Must be asked immediately before a change is
   * sent, because others may have been abandoned while it waited for a connection.
   */
  get isFull(): boolean {
    return this.clients.size > 0 && this.clients.size >= this.most;
  }

  /** Waits until those that do not wait for a standby have been released, at most CHECK_INTERVAL_MS. */
  async checked(): Promise<void> {
    await Promise.race([this.checking, sleep(CHECK_INTERVAL_MS, undefined, { ref: false })]);
  }

  /**
   * Keeps a connection until its statement is settled or does not wait for a standby, and releases it then.
   *
   * @param statement settles with the answer
   * @returns false if there is no room; the caller releases the connection
   */
  keep(client: PoolClient, statement: Promise<unknown>): boolean {
    if (this.clients.size >= this.most) return false;
    const free = (error?: Error): void => {
      if (!this.clients.delete(client)) return;
      client.release(error);
    };
    this.clients.set(client, () => free(new Error('Connection terminated: its statement was abandoned')));
    statement.then(() => free(), free);
    this.timer ??= setInterval(() => {
      if (!this.isChecking) this.check();
    }, CHECK_INTERVAL_MS).unref();
    this.check();
    return true;
  }

  private check(): void {
    this.checking = this.checking.then(() => this.ask());
  }

  /** Releases those that do not wait for a standby. */
  private async ask(): Promise<void> {
    if (this.clients.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    this.isChecking = true;
    const asked = [...this.clients.keys()];
    let client: PoolClient | undefined;
    let failure: Error | undefined;
    try {
      client = await this.pool.connect();
      const pids = asked.map(processIdOf);
      const waiting = new Set((await this.execute<[pid: number]>(client, WAITING, [pids])).map(([pid]) => pid));
      for (const one of asked) if (!waiting.has(processIdOf(one))) this.clients.get(one)?.();
    } catch (error) {
      // The next check asks again.
      failure = error as Error;
    } finally {
      this.isChecking = false;
      client?.release(failure);
    }
  }
}
