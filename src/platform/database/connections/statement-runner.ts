import type { ClientBase, Pool, PoolClient } from 'pg';
import { isConnectionFailure, unavailable } from './connection-errors.js';
import { PoolConnections } from './pool-connections.js';
import { PreparedQuery, type Statement } from './prepared-query.js';
import { tooManyWaiting } from './queue-errors.js';

/** Most statements that wait for a connection of a pool; one more is refused at once. */
const MAX_WAITING_STATEMENTS = 1_000;

/** Longest time in ms that an unused connection is kept from its pool. */
const KEEP_MS = 1_000;

/** Time in ms that statements of before a silence still have for their answers when it is over. */
const LATE_ANSWER_MS = 250;

/** Time in ms between two looks at what is kept, or runs, for too long. */
const CHECK_INTERVAL_MS = 250;

/** A connection that was taken from the pool. */
interface Lease {
  readonly client: PoolClient;
  /** When its last statement ended, in ms of `performance.now()`. */
  idleSince: number;
  readonly onError: () => void;
}

/** A statement that runs. */
interface Execution {
  readonly query: { handleError(error: Error): void };
  /** In ms of `performance.now()`. */
  readonly deadline: number;
}

/**
 * Runs single statements on the connections of a pool.
 *
 * Taking a connection from the pool and giving it back costs timers, listeners and turns of the event loop: as much as a
 * short statement. So a connection is kept for the next statement while the pool has another one for whoever else asks, and
 * for KEEP_MS at the most.
 */
export class StatementRunner {
  private readonly kept: Lease[] = [];
  private readonly executions = new Set<Execution>();
  private timer: NodeJS.Timeout | undefined;
  private isClosing = false;
  private readonly all: PoolConnections;

  /**
   * @param timeoutMs time after which an answer is not waited for any longer, and the connection closed
   * @param silence why nothing should be asked at the moment, if so
   */
  constructor(
    private readonly pool: Pool,
    private readonly timeoutMs: number,
    private readonly silence: () => Error | undefined = () => undefined,
  ) {
    this.all = new PoolConnections(pool);
    pool.on('acquire', () => this.makeRoom());
  }

  /** Connections that there are, those of them that nobody uses, and statements that wait for one. */
  get load(): { readonly connections: number; readonly idle: number; readonly waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.pool;
    return { connections: totalCount, idle: idleCount + this.kept.length, waiting: waitingCount };
  }

  /**
   * Runs a statement.
   *
   * @param onSend called when PostgreSQL is about to receive it
   * @throws ApiError UNAVAILABLE when it would be in vain to ask or too many statements wait for a connection, and
   * whatever pg throws
   */
  async run<Row extends unknown[]>(
    statement: Statement,
    values: readonly unknown[],
    onSend?: () => void,
  ): Promise<Row[]> {
    this.assertAnswers();
    const query = new PreparedQuery<Row>(statement, values);
    const lease = this.kept.pop() ?? (await this.lease());
    try {
      onSend?.();
      const rows = await this.execute(lease.client, query);
      this.release(lease);
      return rows;
    } catch (error) {
      if (isConnectionFailure(error)) {
        this.giveBack(lease, error);
      } else {
        this.release(lease);
      }
      throw error;
    }
  }

  /** Runs a statement on a connection that the caller has, and waits for its answer as long as for any other. */
  async execute<Row extends unknown[]>(client: ClientBase, query: PreparedQuery<Row>): Promise<Row[]> {
    const execution = { query, deadline: performance.now() + this.timeoutMs };
    this.executions.add(execution);
    this.watch();
    try {
      client.query(query);
      return await query.rows;
    } finally {
      this.executions.delete(execution);
    }
  }

  /** @throws ApiError UNAVAILABLE when it would be in vain to ask */
  assertAnswers(): void {
    const silence = this.silence();
    if (silence !== undefined) throw unavailable(silence);
  }

  /** Breaks the connections that there are, after a silence: whoever was at their other ends may be gone. */
  replace(): void {
    this.kept.splice(0).forEach((lease) => this.giveBack(lease));
    void this.all.replace(LATE_ANSWER_MS);
  }

  /** Gives every connection back as soon as it is free, so that the pool can be closed. */
  close(): void {
    this.isClosing = true;
    this.kept.splice(0).forEach((lease) => this.giveBack(lease));
  }

  private async lease(): Promise<Lease> {
    if (this.pool.waitingCount >= MAX_WAITING_STATEMENTS) {
      throw tooManyWaiting();
    }
    const client = await this.pool.connect();
    if (this.silence() !== undefined) {
      client.release();
      this.assertAnswers();
    }
    const lease: Lease = { client, idleSince: 0, onError: () => this.forget(lease) };
    client.on('error', lease.onError);
    return lease;
  }

  private release(lease: Lease): void {
    if (this.pool.waitingCount === 0 && this.hasPoolAnother && !this.isClosing) {
      lease.idleSince = performance.now();
      this.kept.push(lease);
    } else {
      this.giveBack(lease);
    }
  }

  private get hasPoolAnother(): boolean {
    const { totalCount, idleCount, options } = this.pool;
    return idleCount > 0 || totalCount < options.max;
  }

  /** Somebody has taken a connection: if it was the last one of the pool, the next one finds another. */
  private makeRoom(): void {
    if (!this.hasPoolAnother) {
      const lease = this.kept.shift();
      if (lease !== undefined) this.giveBack(lease);
    }
  }

  /** @param failure why the pool must not use the connection again */
  private giveBack({ client, onError }: Lease, failure?: Error): void {
    client.off('error', onError);
    client.release(failure);
  }

  /** A connection broke. If a statement runs on it, that one fails, and gives it back. */
  private forget(lease: Lease): void {
    const index = this.kept.indexOf(lease);
    if (index >= 0) {
      this.kept.splice(index, 1);
      this.giveBack(lease, new Error('The connection broke.'));
    }
  }

  /** Looks after what is kept or runs, while there is something. */
  private watch(): void {
    this.timer ??= setInterval(() => {
      const now = performance.now();
      for (const { query, deadline } of this.executions) {
        if (now > deadline) query.handleError(new Error('Query read timeout'));
      }
      // The one that was used last is the last in line.
      const firstToKeep = this.kept.findIndex(({ idleSince }) => now - idleSince < KEEP_MS);
      const overdue = this.kept.splice(0, firstToKeep < 0 ? this.kept.length : firstToKeep);
      overdue.forEach((lease) => this.giveBack(lease));
      if (this.executions.size === 0 && this.kept.length === 0) {
        clearInterval(this.timer);
        this.timer = undefined;
      }
    }, CHECK_INTERVAL_MS).unref();
  }
}
