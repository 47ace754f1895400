import { Logger } from '@nestjs/common';
import pg, { type PoolClient } from 'pg';
import { ServicePool, type ServicePoolOptions } from '../connections/service-pool.js';
import { StatementRunner } from '../connections/statement-runner.js';
import { Batches } from '../sharing/batches.js';
import type { Execute, Statement } from '../statements/statement.js';
import { type FallbackReason, LATE, NotRead, type Position, Replica, REPLICA_TRIAL_MS, within } from './replica.js';

/** Longest time in ms that a read waits for the position of the primary. */
const POSITION_MS = 20;

/** Longest time in ms that a query for the position waits for the previous one. */
const TURN_MS = 1_000;

// The name of a log file begins with the timeline, as eight hexadecimal digits.
const POSITION: Statement = {
  name: 'read_index_position',
  text: `SELECT lsn::text, system_identifier || '/' || current_database() || '/' || substr(pg_walfile_name(lsn), 1, 8),
      current_setting('synchronous_commit')
    FROM pg_current_wal_flush_lsn() AS lsn, pg_control_system()`,
};

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
 *
 * The read index makes the answers current: a replica must have replayed the position of the primary, so that a read there
 * shows everything that was committed before the read arrived. All reads that wait at the same moment share one query for the
 * position, on a connection of their own. One query is in flight at a time.
 */
export class Replicas {
  private readonly log = new Logger(Replicas.name);
  readonly all: readonly Replica[];
  /** Reads that the primary answered, by the reason why no replica did. */
  readonly fallbacks = new Map<FallbackReason | 'none_ready', number>();
  private readonly pools: ServicePool[] = [];
  private readonly primary: StatementRunner;
  private readonly positions = new Batches<void, Position>(async () => [await this.askPosition()], {
    size: 1,
    concurrency: 1,
    waiting: 1,
    waitMs: TURN_MS,
  });
  private hasWarned = false;
  private next = 0;

  constructor({ primary, replicas, answerTimeoutMs, execute }: ReplicasOptions) {
    this.primary = new StatementRunner(
      this.createPool({ ...primary, max: 1, query_timeout: REPLICA_TRIAL_MS }),
      execute,
    );
    this.all = replicas.map((settings) => {
      const { host, port } = new pg.Client({ connectionString: settings.connectionString });
      const pool = this.createPool({ ...settings, query_timeout: answerTimeoutMs });
      const statements = new StatementRunner(pool, execute);
      return new Replica(`${host}:${port}`, pool, statements, () => this.position());
    });
  }

  private createPool(options: ServicePoolOptions): ServicePool {
    const pool = new ServicePool(options);
    // The pool replaces an idle connection that breaks.
    pool.on('error', () => undefined);
    this.pools.push(pool);
    return pool;
  }

  /** Closes all connections at once. */
  async stop(): Promise<void> {
    const stopped = this.all.map((replica) => replica.stop());
    for (const pool of this.pools) pool.beginSilence(new Error('Connection terminated: the service stops'));
    await Promise.all(stopped);
    await Promise.all(this.pools.map((pool) => pool.end()));
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
        const position = await within(this.position(), POSITION_MS);
        if (position !== LATE) return await replica.read(position, onReplica);
        reason = 'unknown';
      } catch (error) {
        reason = (error as NotRead).reason;
      }
    }
    this.fallbacks.set(reason, (this.fallbacks.get(reason) ?? 0) + 1);
    return onPrimary();
  }

  /** Chooses among the ready replicas in turn; undefined if none is ready. */
  private choose(): Replica | undefined {
    const ready = this.all.filter(({ state }) => state === 'ready');
    return ready[this.next++ % ready.length];
  }

  /**
   * The position at a moment after this call.
   *
   * @throws NotRead when the primary does not answer, or acknowledges commits before they are in the log
   *   (`synchronous_commit=off`)
   */
  private async position(): Promise<Position> {
    try {
      return await this.positions.run(undefined, 'position');
    } catch {
      throw new NotRead('unknown');
    }
  }

  private async askPosition(): Promise<Position> {
    const [row] = await this.primary.run<[lsn: string, origin: string, commit: string]>(POSITION, []);
    const [lsn, origin, synchronousCommit] = row as [string, string, string];
    if (synchronousCommit !== 'off') return { lsn, origin };
    if (!this.hasWarned) this.log.warn('Replicas are not used: they need synchronous_commit=on in PostgreSQL.');
    this.hasWarned = true;
    throw new Error('synchronous_commit is off on the primary');
  }
}
