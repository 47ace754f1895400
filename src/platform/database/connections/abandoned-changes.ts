import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient, QueryArrayConfig } from 'pg';
import { tooManyWaiting } from './queue-errors.js';
import { processIdOf } from '../statements/pg-internals.js';
import type { ServicePool } from './service-pool.js';

/** Interval in ms of the check which abandoned changes still wait for a standby. */
const CHECK_INTERVAL_MS = 1_000;

/** Longest time in ms of the check's query, which may run on a connection that hangs. */
const ANSWER_MS = 2_000;

const WAITING = `SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[]) AND wait_event = 'SyncRep'`;

/**
 * Changes that got no answer in time because their commit may be waiting for a synchronous standby. PostgreSQL ends such a
 * wait neither at `statement_timeout` nor when the connection is closed. If the pool replaced these connections, their
 * number in PostgreSQL would grow without bound. So each keeps its place in the pool until its wait has ended. Once half of
 * the pool is kept, further changes are refused, and the other half serves reads.
 */
export class AbandonedChanges {
  private readonly clients = new Map<PoolClient, () => void>();
  private timer: NodeJS.Timeout | undefined;
  private checking = Promise.resolve();
  private isChecking = false;
  private readonly most: number;
  /** `ask` in the async context of the start: tracing must not count the query to the request that abandoned its change. */
  private readonly askApart: () => Promise<void>;

  constructor(private readonly pool: ServicePool) {
    this.askApart = AsyncResource.bind(() => this.ask());
    this.most = Math.floor(pool.options.max / 2);
  }

  /**
   * Whether half of the pool's connections are kept. If so, no change may be sent. Must be checked immediately before a
   * change is sent, because others may have been abandoned while it waited for a connection.
   */
  get isFull(): boolean {
    return this.clients.size > 0 && this.clients.size >= this.most;
  }

  /**
   * Must be called before a change takes a connection. If half of the pool is kept, waits at most CHECK_INTERVAL_MS for a
   * check to release connections that no longer wait for a standby.
   *
   * @throws ApiError UNAVAILABLE when there is still no room
   */
  async admit(): Promise<void> {
    if (!this.isFull) return;
    await Promise.race([this.checking, sleep(CHECK_INTERVAL_MS, undefined, { ref: false })]);
    if (this.isFull) throw tooManyWaiting();
  }

  /** Whether the connection is kept. If so, only this class may release it. */
  has(client: PoolClient): boolean {
    return this.clients.has(client);
  }

  /**
   * Keeps a connection until its statement is answered or no longer waits for a standby, and then releases it.
   *
   * @param answer settles with the answer to the statement
   * @returns false if half of the pool is kept already; the caller must release the connection
   */
  keep(client: PoolClient, answer: Promise<unknown>): boolean {
    if (this.clients.size >= this.most) return false;
    const free = (error?: Error): void => {
      if (!this.clients.delete(client)) return;
      client.release(error);
    };
    this.clients.set(client, () => free(new Error('Connection terminated: its statement was abandoned')));
    answer.then(() => free(), free);
    this.timer ??= setInterval(() => {
      if (!this.isChecking) this.check();
    }, CHECK_INTERVAL_MS).unref();
    this.check();
    return true;
  }

  private check(): void {
    this.checking = this.checking.then(() => this.askApart());
  }

  /** Releases the connections that no longer wait for a standby. */
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
