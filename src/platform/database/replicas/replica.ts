import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, PoolClient } from 'pg';
import { ApiError } from '../../errors/api-error.js';
import { isConnectionFailure } from '../connections/connection-errors.js';
import type { ServicePool } from '../connections/service-pool.js';
import type { Statement } from '../statements/statement.js';
import type { StatementRunner } from '../connections/statement-runner.js';
import { originOf, type Position } from './read-index.js';
import { LATE, within } from './time-limit.js';

/** Longest time in ms that a read waits until a replica has replayed the position of the primary. */
export const REPLAY_MS = 20;

/**
 * Time in ms that a replica has for a connection whose position is known, and then for the read. After that it must show
 * within PROOF_MS that it answers at all.
 */
const ANSWER_MS = 50;
const PROOF_MS = 20;

/** Pause in ms between two looks at the replay position during a wait. */
const REPLAY_INTERVAL_MS = 1;

/** Interval of the watch in ms: a replica that is not used is left alone for this time. */
const WATCH_INTERVAL_MS = 500;

/**
 * What the watch has found. `ready`: used. `behind`: has not replayed what the primary had flushed 20 ms ago. `away`:
 * unreachable, refuses, or does not answer. `primary`: no standby, such as after a promotion. `foreign`: follows another
 * database or timeline. `unknown`: not judged, because the service has just started or the primary does not tell its
 * position.
 */
export const REPLICA_STATES = ['ready', 'behind', 'away', 'primary', 'foreign', 'unknown'] as const;
export type ReplicaState = (typeof REPLICA_STATES)[number];

/** Why a read was not answered by a replica. */
export type FallbackReason = ReplicaState | 'late' | 'refused';

/** A read that a replica did not answer; the primary must. */
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

const IS_STANDBY: Statement = { name: 'replica_is_standby', text: 'SELECT pg_is_in_recovery()' };

// The timeline of the last restart point, of the last page that was written, and that of the stream, which only roles with
// pg_read_all_stats see: what is known first of the three. None of them is ahead of what the replica follows.
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

/** The connections to a replica: a pool for reads, and one connection that watches. */
export interface ReplicaConnections {
  readonly pool: ServicePool;
  readonly statements: StatementRunner;
  readonly watchPool: ServicePool;
  readonly watchStatements: StatementRunner;
}

/**
 * One read replica. A read is given to it only while the watch finds it ready, and runs on a connection that has shown
 * just before that its server is a standby and has replayed the given position. Each connection is asked, because a proxy
 * may lead each one to another server.
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

  /** How far the replica was behind the primary's position when it was last asked, in bytes of the write-ahead log. */
  behindBytes = 0;
  /** Statements that the replica has answered. */
  reads = 0;

  /**
   * @param name host and port, for log and metrics
   * @param position of the primary, for the watch; returns undefined when reads may be stale
   */
  constructor(
    readonly name: string,
    private readonly connections: ReplicaConnections,
    private readonly position: () => Promise<Position | undefined>,
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
   * @param position to be replayed before; undefined reads whatever the replica has
   * @param work reads on the connection and releases it
   * @throws NotRead when the replica is not fit for the read, late, or fails; the work may go on
   */
  async read<Result>(
    position: Position | undefined,
    work: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
  ): Promise<Result> {
    try {
      const opening = this.open(position);
      const client = await within(opening, ANSWER_MS);
      if (client === LATE) {
        opening.then(
          (late) => late.release(),
          () => undefined,
        );
        void this.proveAnswering();
        throw new NotRead('late');
      }
      const answer = work(client, this.connections.statements);
      let result = await within(answer, ANSWER_MS);
      if (result === LATE) {
        if (!(await this.proveAnswering())) throw new NotRead('late');
        result = await answer;
      }
      this.reads++;
      return result;
    } catch (error) {
      if (error instanceof NotRead) throw error;
      if (!isUnfit(error)) throw new NotRead('refused');
      this.current = 'away';
      throw new NotRead('away');
    }
  }

  /** A connection on which the position is replayed. */
  private async open(position: Position | undefined): Promise<PoolClient> {
    const { pool, statements } = this.connections;
    const client = await pool.connect();
    if (position === undefined) return client;
    let state: ReplicaState;
    try {
      state = await this.judge(client, statements, position);
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
    if (state === 'ready') return client;
    this.current = state;
    const failure = new NotRead(state);
    // Through a proxy another connection may lead to a server that is fit.
    client.release(state === 'behind' ? undefined : failure);
    throw failure;
  }

  private async judge(client: ClientBase, statements: StatementRunner, position: Position): Promise<ReplicaState> {
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

  /** Whether the replica answers within PROOF_MS. If not, it is not used until the watch has reached it. */
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

  /** Finds out the state. True if the replica has answered, whatever its state. */
  private watch(): Promise<boolean> {
    return (this.watching ??= this.look().finally(() => (this.watching = undefined)));
  }

  private async look(): Promise<boolean> {
    const { pool, watchPool, watchStatements } = this.connections;
    let position: Position | undefined;
    try {
      position = await this.position();
    } catch {
      this.found('unknown', REASONS.unknown);
      return false;
    }
    let failure: Error | undefined;
    let client: PoolClient | undefined;
    try {
      client = await watchPool.connect();
      let state: ReplicaState;
      if (position === undefined) {
        const [row] = await watchStatements.execute<[boolean]>(client, IS_STANDBY, []);
        state = row?.[0] === true ? 'ready' : 'primary';
      } else {
        state = await this.judge(client, watchStatements, position);
      }
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

  /** A state is logged when two watches in a row have found it, so that a replica that is behind at times fills no log. */
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

/** SQLSTATE of a cancelled statement, which says nothing about the next one. */
const CANCELLED = '57014';

/** Whether an error is about the replica, not about one statement. */
function isUnfit(error: unknown): boolean {
  // Through TypeORM a connection failure surfaces as ApiError.
  const cause = error instanceof ApiError ? error.cause : error;
  return isConnectionFailure(cause) && (cause as { code?: unknown }).code !== CANCELLED;
}

function firstLine({ message, code }: Error & { code?: string }): string {
  return (message || code || 'no reason given').split('\n')[0] as string;
}
