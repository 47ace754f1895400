import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient, QueryArrayConfig } from 'pg';
import { tooManyWaiting } from './queue-errors.js';
import { processIdOf } from '../statements/pg-internals.js';
import type { ServicePool } from './service-pool.js';

/** Interval in ms of the question which abandoned changes still wait. */
const CHECK_INTERVAL_MS = 1_000;

/** Longest time in ms that the answer to the question may take: it may meet a connection that hangs. */
const ANSWER_MS = 2_000;

const WAITING = `SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[]) AND wait_event = 'SyncRep'`;

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
  /** Asks in the context of the start: the question is not part of the request whose change was abandoned. */
  private readonly askApart: () => Promise<void>;

  constructor(private readonly pool: ServicePool) {
    this.askApart = AsyncResource.bind(() => this.ask());
    this.most = Math.floor(pool.options.max / 2);
  }

  /**
   * Whether half of the pool's connections are kept; nothing may be sent then. Must be asked immediately before a change is
   * sent, because others may have been abandoned while it waited for a connection.
   */
  get isFull(): boolean {
    return this.clients.size > 0 && this.clients.size >= this.most;
  }

  /**
   * Lets a change go on that is about to be sent. When the pool has no room for it, waits until connections without a wait for a
   * standby have been released, at most CHECK_INTERVAL_MS.
   *
   * @throws ApiError UNAVAILABLE when there is still no room
   */
  async admit(): Promise<void> {
    if (!this.isFull) return;
    await Promise.race([this.checking, sleep(CHECK_INTERVAL_MS, undefined, { ref: false })]);
    if (this.isFull) throw tooManyWaiting();
  }

  /** Whether the connection is kept, and so must not be released by others. */
  has(client: PoolClient): boolean {
    return this.clients.has(client);
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
    this.checking = this.checking.then(() => this.askApart());
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
      const question: QueryArrayConfig & { query_timeout: number } = {
        text: WAITING,
        values: [asked.map(processIdOf)],
        rowMode: 'array',
        query_timeout: ANSWER_MS,
      };
      const { rows } = await client.query<[pid: number]>(question);
      const waiting = new Set(rows.map(([pid]) => pid));
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
