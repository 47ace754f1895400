import pg, { type PoolClient, type PoolConfig } from 'pg';
import { ServicePool } from '../connections/service-pool.js';
import type { Execute } from '../statements/statement.js';
import { StatementRunner } from '../connections/statement-runner.js';
import { type Position, ReadIndex } from './read-index.js';
import { type FallbackReason, NotRead, Replica } from './replica.js';
import { LATE, within } from './time-limit.js';

/** Longest time in ms that a read waits for the position of the primary. */
const POSITION_MS = 20;

/** Longest time in ms of an attempt to connect to a replica, and of an answer to its watch. */
const TRIAL_MS = 1_000;

/**
 * Longest time in ms that a statement waits for a lock on a replica. Only the replay of a change of the schema holds locks
 * that a read waits for.
 */
const LOCK_TIMEOUT_MS = 50;

/** Settings of `Replicas`. */
export interface ReplicasOptions {
  readonly primaryUrl: string;
  readonly replicaUrls: readonly string[];
  /** `fresh`: a read shows all that was committed before it arrived. `stale`: whatever a replica has. */
  readonly reads: 'fresh' | 'stale';
  /** Settings of each connection. */
  readonly settings: PoolConfig;
  /** Longest time in ms for the answer to a statement. */
  readonly answerTimeoutMs: number;
  readonly execute: Execute;
}

/**
 * The read replicas. A read that no replica can answer at once and correctly is answered by the primary, so a replica can
 * neither fail a read nor delay it by more than tens of ms.
 */
export class Replicas {
  readonly all: readonly Replica[];
  /** Reads that the primary answered, by the reason why no replica did. */
  readonly fallbacks = new Map<FallbackReason | 'none_ready', number>();
  private readonly indexPool: ServicePool;
  private readonly index: ReadIndex;
  private readonly isFresh: boolean;
  private next = 0;

  constructor({ primaryUrl, replicaUrls, reads, settings, answerTimeoutMs, execute }: ReplicasOptions) {
    const trial = { ...settings, max: 1, connectionTimeoutMillis: TRIAL_MS };
    this.indexPool = toPool({ ...trial, connectionString: primaryUrl });
    this.index = new ReadIndex(this.indexPool, new StatementRunner(this.indexPool, TRIAL_MS, execute));
    this.isFresh = reads === 'fresh';
    this.all = replicaUrls.map((connectionString) => {
      const { host, port } = new pg.Client({ connectionString });
      const pool = toPool({
        ...settings,
        connectionString,
        connectionTimeoutMillis: TRIAL_MS,
        lock_timeout: LOCK_TIMEOUT_MS,
      });
      const watchPool = toPool({ ...trial, connectionString });
      const connections = {
        pool,
        statements: new StatementRunner(pool, answerTimeoutMs, execute),
        watchPool,
        watchStatements: new StatementRunner(watchPool, TRIAL_MS, execute),
      };
      return new Replica(`${host}:${port}`, connections, async () =>
        this.isFresh ? this.index.position() : undefined,
      );
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

  /** Fails questions for the position at once, while the primary sends no answer at all. */
  beginPrimarySilence(error: () => Error): void {
    this.indexPool.beginSilence(error);
  }

  endPrimarySilence(): void {
    this.indexPool.endSilence();
  }

  /**
   * Runs a read on a replica, or else on the primary. It begins on a replica only after that has replayed what the primary
   * had flushed at a moment after this call, unless reads may be stale.
   *
   * @param onReplica reads on the connection and releases it; its result is dropped when the primary answers
   * @throws what `onPrimary` throws, nothing of a replica
   */
  async read<Result>(
    onReplica: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
    onPrimary: () => Promise<Result>,
  ): Promise<Result> {
    let reason: FallbackReason | 'none_ready' = 'none_ready';
    const replica = this.choose();
    if (replica !== undefined) {
      try {
        return await replica.read(this.isFresh ? await this.position() : undefined, onReplica);
      } catch (error) {
        reason = (error as NotRead).reason;
      }
    }
    this.fallbacks.set(reason, (this.fallbacks.get(reason) ?? 0) + 1);
    return onPrimary();
  }

  /** The ready replicas in turn. */
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

function toPool(options: PoolConfig): ServicePool {
  const pool = new ServicePool(options);
  // The pool replaces an idle connection that breaks.
  pool.on('error', () => undefined);
  return pool;
}
