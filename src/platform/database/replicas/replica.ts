import { Logger } from '@nestjs/common';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, PoolClient } from 'pg';
import { ApiError } from '../../errors/api-error.js';
import { isConnectionFailure } from '../connections/connection-errors.js';
import type { ServicePool } from '../connections/service-pool.js';
import type { Statement } from '../statements/statement.js';
import type { StatementRunner } from '../connections/statement-runner.js';
import { originOf, type Position } from './read-index.js';

/** Longest time in ms that a read waits until a replica has replayed the position of the primary. */
export const REPLAY_MS = 20;

/**
 * Time in ms that a replica has to provide a connection which has replayed the position, and again for the read. If it is
 * late, it must answer the watch within PROOF_MS, or else counts as unreachable.
 */
const ANSWER_MS = 50;
const PROOF_MS = 20;

/** Pause in ms between two queries for the replay position. */
const REPLAY_INTERVAL_MS = 1;

/** Interval of the watch in ms. A replica that is not ready gets no reads until the next watch. */
const WATCH_INTERVAL_MS = 500;

/**
 * The state of a replica. `ready`: used for reads. `behind`: has not replayed what the primary had flushed 20 ms ago.
 * `away`: unreachable, refuses connections, or does not answer. `primary`: is no standby, for instance after a promotion.
 * `foreign`: follows another database or timeline. `unknown`: the service has just started, or the position of the primary
 * is not known.
 */
export const REPLICA_STATES = ['ready', 'behind', 'away', 'primary', 'foreign', 'unknown'] as const;
export type ReplicaState = (typeof REPLICA_STATES)[number];

/** Why a read was not answered by a replica. */
export type FallbackReason = ReplicaState | 'late' | 'refused';

/** A replica did not answer a read, so the primary must. */
export class NotRead extends Error {
  constructor(readonly reason: FallbackReason) {
    super(reason);
  }
}

const REASONS: Readonly<Record<ReplicaState, string>> = {
  ready: '',
  behind: 'it is behind the primary',
  away: 'it cannot be reached',
  primary: 'it is no standby',
  foreign: 'it follows another database or timeline than the primary',
  unknown: 'the position of the primary is not known',
};

// The latest of three timelines: of the last restart point, of the last page written, and of the replication stream, which
// only roles with pg_read_all_stats see. None of them is ahead of the timeline that the replica follows.
const ORIGIN: Statement = {
  name: '',
  text: `SELECT pg_is_in_recovery(), system_identifier || '/' || current_database(),
      upper(lpad(to_hex(greatest(timeline_id, min_recovery_end_timeline,
        (SELECT received_tli FROM pg_stat_wal_receiver))), 8, '0'))
    FROM pg_control_system(), pg_control_checkpoint(), pg_control_recovery()`,
};

const BEHIND: Statement = {
  name: 'replica_behind',
  text: 'SELECT pg_is_in_recovery(), pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn())::float8',
};

/** The connections to a replica: a pool for reads, and a pool of one connection for the watch. */
export interface ReplicaConnections {
  readonly pool: ServicePool;
  readonly statements: StatementRunner;
  readonly watchPool: ServicePool;
  readonly watchStatements: StatementRunner;
}

/**
 * One read replica. It gets reads only while the watch finds it ready. Before each read, its connection is checked: the
 * server must be a standby that has replayed the given position. Every connection is checked, because a proxy may lead each
 * one to another server.
 */
export class Replica {
  private readonly log = new Logger(Replica.name);
  /** The origin that each connection was found to follow. */
  private readonly origins = new WeakMap<ClientBase, string>();
  private readonly stopping = new AbortController();
  private watching: Promise<boolean> | undefined;
  private running: Promise<void> | undefined;
  private loggedState: ReplicaState = 'ready';
  private watchedState: ReplicaState = 'unknown';
  private current: ReplicaState = 'unknown';

  /** How far the replica was behind the primary at the last check, in bytes of the write-ahead log. */
  behindBytes = 0;
  /** Number of reads that the replica has answered. */
  reads = 0;

  /**
   * @param name host and port, for log and metrics
   * @param position returns the position of the primary, for the watch
   */
  constructor(
    readonly name: string,
    private readonly connections: ReplicaConnections,
    private readonly position: () => Promise<Position>,
  ) {}

  get state(): ReplicaState {
    return this.current;
  }

  start(): void {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    const { pool, watchPool } = this.connections;
    for (const one of [pool, watchPool]) one.beginSilence(() => new Error('Connection terminated: the service stops'));
    await this.running;
    await Promise.all([pool.end(), watchPool.end()]);
  }

  /**
   * Runs a read.
   *
   * @param position the position that must be replayed first
   * @param work reads on the connection and releases it
   * @throws NotRead when the replica is not ready, is late, or fails; `work` may still be running
   */
  async read<Result>(
    position: Position,
    work: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
  ): Promise<Result> {
    try {
      const client = await this.leaseInTime(position);
      const answer = work(client, this.connections.statements);
      let result = await within(answer, ANSWER_MS);
      if (result === LATE) {
        if (!(await this.proveAnswering())) throw new NotRead('late');
        result = await answer;
      }
      this.reads++;
      return result;
    } catch (error) {
      throw this.settle(error);
    }
  }

  /** Notes the state that a failed read has found, and says why the replica did not answer it. */
  private settle(error: unknown): NotRead {
    const reason = error instanceof NotRead ? error.reason : blames(error);
    if (reason !== 'late' && reason !== 'refused') this.current = reason;
    return error instanceof NotRead ? error : new NotRead(reason);
  }

  private async leaseInTime(position: Position): Promise<PoolClient> {
    const leasing = this.lease(position);
    const client = await within(leasing, ANSWER_MS);
    if (client !== LATE) return client;
    leasing.then(
      (late) => late.release(),
      () => undefined,
    );
    void this.proveAnswering();
    throw new NotRead('late');
  }

  /** Takes a connection whose server has replayed the position. */
  private async lease(position: Position): Promise<PoolClient> {
    const { pool, statements } = this.connections;
    const client = await pool.connect();
    try {
      const state = await this.stateAt(client, statements, position);
      if (state === 'ready') return client;
      throw new NotRead(state);
    } catch (error) {
      // A failure closes the connection: through a proxy, the next one may lead to a server that is ready.
      client.release(error instanceof NotRead && error.reason === 'behind' ? undefined : (error as Error));
      throw error;
    }
  }

  /**
   * The state of a connection's server for reads at a position. Waits up to REPLAY_MS for the server to replay it; a server
   * that has not is `behind`.
   */
  private async stateAt(client: ClientBase, statements: StatementRunner, position: Position): Promise<ReplicaState> {
    const deadline = performance.now() + REPLAY_MS;
    if (this.origins.get(client) !== position.origin) {
      type Row = [isStandby: boolean, database: string, timeline: string];
      const [row] = await statements.execute<Row>(client, ORIGIN, []);
      const [isStandby, database, timeline] = row as Row;
      if (!isStandby) return 'primary';
      if (originOf(database, timeline) !== position.origin) return 'foreign';
      this.origins.set(client, position.origin);
    }
    for (;;) {
      const [row] = await statements.execute<[boolean, number | null]>(client, BEHIND, [position.lsn]);
      const [isStandby, behind] = row as [boolean, number | null];
      if (!isStandby) return 'primary';
      if (behind === null) return 'behind';
      this.behindBytes = Math.max(0, behind);
      if (behind <= 0) return 'ready';
      if (performance.now() >= deadline) return 'behind';
      await sleep(REPLAY_INTERVAL_MS);
    }
  }

  /** Whether the replica answers within PROOF_MS. If not, it gets no reads until the watch reaches it. */
  private async proveAnswering(): Promise<boolean> {
    const isAnswering = await within(this.watch(), PROOF_MS);
    if (isAnswering === LATE) this.current = 'away';
    return isAnswering === true;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const from = performance.now();
      await this.watch();
      const rest = from + WATCH_INTERVAL_MS - performance.now();
      await sleep(Math.max(0, rest), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Finds out the state; calls during a check share it. True if the replica has answered, whatever its state. */
  private watch(): Promise<boolean> {
    return (this.watching ??= this.checkState().finally(() => (this.watching = undefined)));
  }

  private async checkState(): Promise<boolean> {
    const { pool, watchPool, watchStatements } = this.connections;
    const position = await this.position().catch(() => undefined);
    if (position === undefined) {
      this.found('unknown', REASONS.unknown);
      return false;
    }
    let failure: Error | undefined;
    let client: PoolClient | undefined;
    try {
      client = await watchPool.connect();
      const state = await this.stateAt(client, watchStatements, position);
      pool.endSilence();
      this.found(state, REASONS[state]);
      return true;
    } catch (error) {
      failure = error as Error;
      pool.beginSilence(() => failure as Error);
      this.found('away', `${REASONS.away} (${firstLine(failure)})`);
      return false;
    } finally {
      client?.release(failure);
    }
  }

  /** Sets the state. Logs it only when two watches in a row have found it: a replica may often be behind for a moment. */
  private found(state: ReplicaState, reason: string): void {
    if (this.stopping.signal.aborted) return;
    const isLasting = state === this.watchedState;
    this.watchedState = this.current = state;
    if (!isLasting || state === this.loggedState) return;
    this.loggedState = state;
    if (state === 'ready') {
      this.log.log(`Replica ${this.name} is used again.`);
    } else {
      this.log.warn(`Replica ${this.name} is not used: ${reason}. Other replicas or the primary answer its reads.`);
    }
  }
}

/** SQLSTATEs that are the fault of one statement: cancelled (also by the replay), and a change or lock on a standby. */
const FAULTS_OF_STATEMENTS = new Set<unknown>(['57014', '25006']);

/** Whether an error concerns the replica (`away`) or only one statement (`refused`). */
function blames(error: unknown): 'away' | 'refused' {
  // Through TypeORM a connection failure surfaces as ApiError.
  const cause = error instanceof ApiError ? error.cause : error;
  const { driverError } = cause as { driverError?: unknown };
  const { code } = (driverError ?? cause) as { code?: unknown };
  return isConnectionFailure(cause) && !FAULTS_OF_STATEMENTS.has(code) ? 'away' : 'refused';
}

function firstLine({ message, code }: Error & { code?: string }): string {
  return (message || code || 'no reason given').split('\n')[0] as string;
}

/** Returned by `within` when the time is over. */
export const LATE: unique symbol = Symbol('late');

/**
 * Waits for a promise at most `limitMs` ms. A late promise is not cancelled, and its rejection is ignored. Data that arrived
 * while this process was busy is in time.
 *
 * @throws the error of the promise, if it rejects in time
 */
export async function within<Result>(promise: Promise<Result>, limitMs: number): Promise<Result | typeof LATE> {
  const settled = new AbortController();
  const { signal } = settled;
  const late = sleep(limitMs, undefined, { signal })
    // Timers run before sockets are read, so wait until these have been read once.
    .then(() => nextTurn(undefined, { signal }))
    .then(() => nextTurn(undefined, { signal }))
    .catch(() => undefined)
    .then((): typeof LATE => LATE);
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    settled.abort();
  }
}
