import pg, { type PoolClient } from 'pg';
import { ServicePool, type ServicePoolOptions } from '../connections/service-pool.js';
import type { Execute } from '../statements/statement.js';
import { StatementRunner } from '../connections/statement-runner.js';
import { type Position, ReadIndex } from './read-index.js';
import { type FallbackReason, LATE, NotRead, Replica, within } from './replica.js';

/** Longest time in ms that a read waits for the position of the primary. */
const POSITION_MS = 20;

/** Longest time in ms to connect to a replica, and to wait for an answer to the watch. */
export const REPLICA_TRIAL_MS = 1_000;

/**
 * Longest time in ms that a statement waits for a lock on a replica. Only the replay of a schema change holds locks for
 * which reads wait.
 */
export const REPLICA_LOCK_TIMEOUT_MS = 50;

/** Settings of `Replicas`. */
export interface ReplicasOptions {
  /** Settings of the connections to the primary and to each replica, with REPLICA_TRIAL_MS as their time-out. */
  readonly primary: ServicePoolOptions;
  readonly replicas: readonly ServicePoolOptions[];
  /** Longest time in ms for the answer to a statement. */
  readonly answerTimeoutMs: number;
  readonly execute: Execute;
}

/**
 * The read replicas. If no replica can answer a read at once and correctly, the primary answers it. So a replica can neither
 * fail a read nor delay it by more than tens of ms.
 */
export class Replicas {
  readonly all: readonly Replica[];
  /** Reads that the primary answered, by the reason why no replica did. */
  readonly fallbacks = new Map<FallbackReason | 'none_ready', number>();
  private readonly indexPool: ServicePool;
  private readonly index: ReadIndex;
  private next = 0;

  constructor({ primary, replicas, answerTimeoutMs, execute }: ReplicasOptions) {
    this.indexPool = toPool({ ...primary, max: 1 });
    this.index = new ReadIndex(this.indexPool, new StatementRunner(this.indexPool, REPLICA_TRIAL_MS, execute));
    this.all = replicas.map((settings) => {
      const { host, port } = new pg.Client({ connectionString: settings.connectionString });
      const pool = toPool(settings);
      const watchPool = toPool({ ...settings, max: 1 });
      const connections = {
        pool,
        statements: new StatementRunner(pool, answerTimeoutMs, execute),
        watchPool,
        watchStatements: new StatementRunner(watchPool, REPLICA_TRIAL_MS, execute),
      };
      return new Replica(`${host}:${port}`, connections, () => this.index.position());
    });
  }

  /** Begins to watch the replicas. Until one is found ready, the primary answers all reads. */
  start(): void {
    for (const replica of this.all) replica.start();
  }

  async stop(): Promise<void> {
    this.beginPrimarySilence(() => new Error('Connection terminated: the service stops'));
    await Promise.all(this.all.map((replica) => replica.stop()));
    await this.indexPool.end();
  }

  /** Fails queries for the position at once while the primary is silent. */
  beginPrimarySilence(error: () => Error): void {
    this.indexPool.beginSilence(error);
  }

  endPrimarySilence(): void {
    this.indexPool.endSilence();
  }

  /**
   * Runs a read on a replica that has replayed everything that the primary had flushed at a moment after this call, or else
   * on the primary.
   *
   * @param onReplica reads on the connection and releases it; its result is dropped if the primary answers instead
   * @throws only errors of `onPrimary`
   */
  async read<Result>(
    onReplica: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
    onPrimary: () => Promise<Result>,
  ): Promise<Result> {
    let reason: FallbackReason | 'none_ready' = 'none_ready';
    const replica = this.choose();
    if (replica !== undefined) {
      try {
        return await replica.read(await this.position(), onReplica);
      } catch (error) {
        reason = (error as NotRead).reason;
      }
    }
    this.fallbacks.set(reason, (this.fallbacks.get(reason) ?? 0) + 1);
    return onPrimary();
  }

  /** Chooses among the ready replicas in turn; undefined if none is ready. */
  private choose(): Replica | undefined {
    const { length } = this.all;
    for (let offset = 0; offset < length; offset++) {
      const index = (this.next + offset) % length;
      const replica = this.all[index];
      if (replica?.state === 'ready') {
        this.next = index + 1;
        return replica;
      }
    }
    return undefined;
  }

  private async position(): Promise<Position> {
    const position = await within(this.index.position(), POSITION_MS).catch(() => LATE);
    if (position === LATE) throw new NotRead('unknown');
    return position as Position;
  }
}

function toPool(options: ServicePoolOptions): ServicePool {
  const pool = new ServicePool(options);
  // The pool replaces an idle connection that breaks.
  pool.on('error', () => undefined);
  return pool;
}
