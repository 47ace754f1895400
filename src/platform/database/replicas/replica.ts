import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, PoolClient } from 'pg';
import { ApiError } from '../../errors/api-error.js';
import { isConnectionFailure } from '../connections/connection-errors.js';
import type { ServicePool } from '../connections/service-pool.js';
import type { Statement } from '../statements/statement.js';
import type { StatementRunner } from '../connections/statement-runner.js';

/** Longest time in ms that a read waits until a replica has replayed the position of the primary. */
const REPLAY_MS = 20;

/**
 * Time in ms that a replica has to provide a connection which has replayed the position, and again for the read. If the read
 * is late, the replica must provide another such connection within PROOF_MS.
 */
const ANSWER_MS = 50;
const PROOF_MS = 20;

/** Pause in ms between two queries for the replay position. */
const REPLAY_INTERVAL_MS = 1;

/** Longest time in ms to connect to a replica that is not ready, and of the pause before it is tried again. */
export const REPLICA_TRIAL_MS = 1_000;
const PAUSE_MS = 500;

/**
 * The state of a replica. `ready`: used for reads. `behind`: has not replayed what the primary had flushed 20 ms ago.
 * `away`: unreachable, refuses connections, or does not answer. `primary`: is no standby, for instance after a promotion.
 * `foreign`: follows another database or timeline.
 */
export const REPLICA_STATES = ['ready', 'behind', 'away', 'primary', 'foreign'] as const;
export type ReplicaState = (typeof REPLICA_STATES)[number];

/** Why a replica did not answer a read: its state, an error of the statement alone, or no position to replay. */
export type FallbackReason = Exclude<ReplicaState, 'ready'> | 'refused' | 'unknown';

const REASONS: Readonly<Record<FallbackReason, string>> = {
  behind: 'it is behind the primary',
  away: 'it does not answer in time',
  primary: 'it is no standby',
  foreign: 'it follows another database or timeline than the primary',
  refused: 'it refuses a statement',
  unknown: 'the position of the primary is not known',
};

/** A replica did not answer a read, so the primary must. */
export class NotRead extends Error {
  constructor(
    readonly reason: FallbackReason,
    cause?: unknown,
  ) {
    super(cause instanceof Error ? cause.message : REASONS[reason], { cause });
  }
}

/** A position in the primary's write-ahead log: how much was flushed at one moment. */
export interface Position {
  /** The address behind the last flushed byte (`pg_lsn`). Every acknowledged commit lies before it. */
  readonly lsn: string;
  /** The database and the timeline to which the address belongs; a failover begins a new timeline. */
  readonly origin: string;
}

// The latest of three timelines: of the last restart point, of the last page written, and of the replication stream, which
// only roles with pg_read_all_stats see. None of them is ahead of the timeline that the replica follows.
const ORIGIN: Statement = {
  name: '',
  text: `SELECT pg_is_in_recovery(), system_identifier || '/' || current_database() || '/' ||
      upper(lpad(to_hex(greatest(timeline_id, min_recovery_end_timeline,
        (SELECT received_tli FROM pg_stat_wal_receiver))), 8, '0'))
    FROM pg_control_system(), pg_control_checkpoint(), pg_control_recovery()`,
};

const BEHIND: Statement = {
  name: 'replica_behind',
  text: 'SELECT pg_is_in_recovery(), pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn())::float8',
};

/**
 * One read replica. Before each read, its connection is checked: the server must be a standby that has replayed the given
 * position. Every connection is checked, because a proxy may lead each one to another server. A replica that fails a read,
 * or is late, gets no more until a trial finds it ready; trials are repeated with pauses.
 */
export class Replica {
  private readonly log = new Logger(Replica.name);
  /** The origin that each connection was found to follow. */
  private readonly origins = new WeakMap<ClientBase, string>();
  private readonly stopping = new AbortController();
  /** Trials run while this is not `ready`. */
  private current: ReplicaState = 'ready';
  private trials: Promise<void> | undefined;

  /** How far the replica was behind the primary at the last check, in bytes of the write-ahead log. */
  behindBytes = 0;
  /** Number of reads that the replica has answered. */
  reads = 0;

  /**
   * @param name host and port, for log and metrics
   * @param position returns the position of the primary, for trials
   */
  constructor(
    readonly name: string,
    private readonly pool: ServicePool,
    private readonly statements: StatementRunner,
    private readonly position: () => Promise<Position>,
  ) {}

  get state(): ReplicaState {
    return this.current;
  }

  /** Ends the trials, before the pool is closed. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.trials;
  }

  /**
   * Runs a read.
   *
   * @param position the position that must be replayed first
   * @param work reads on the connection and releases it
   * @throws NotRead when the replica is late or fails; `work` may still be running
   */
  async read<Result>(
    position: Position,
    work: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
  ): Promise<Result> {
    try {
      const answer = work(await this.leaseWithin(ANSWER_MS, position), this.statements);
      let result = await within(answer, ANSWER_MS);
      if (result === LATE) {
        (await this.leaseWithin(PROOF_MS, position)).release();
        result = await answer;
      }
      this.reads++;
      return result;
    } catch (error) {
      const reason = reasonOf(error);
      this.note(reason);
      throw new NotRead(reason);
    }
  }

  /** Sets the state, and begins trials if it was `ready`. */
  private note(reason: FallbackReason): void {
    if (reason === 'refused' || reason === 'unknown') return;
    const wasReady = this.current === 'ready';
    this.current = reason;
    if (wasReady) this.trials = this.tryUntilReady();
  }

  /** Logs a state only when a second trial confirms it: a replica may often be behind for a moment. */
  private async tryUntilReady(): Promise<void> {
    const { signal } = this.stopping;
    let logged: FallbackReason | undefined;
    for (let trial = 1; !signal.aborted; trial++) {
      try {
        (await this.leaseWithin(REPLICA_TRIAL_MS, await this.position())).release();
        this.current = 'ready';
        if (logged !== undefined) this.log.log(`Replica ${this.name} is used again.`);
        return;
      } catch (error) {
        const reason = reasonOf(error);
        this.note(reason);
        if (trial > 1 && reason !== logged && !signal.aborted) {
          logged = reason;
          const { message, code } = error as NodeJS.ErrnoException;
          const text =
            error instanceof NotRead ? message : `it cannot be reached (${(message || code)?.split('\n')[0]})`;
          this.log.warn(`Replica ${this.name} is not used: ${text}. Other replicas or the primary answer its reads.`);
        }
        await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** Takes a connection whose server has replayed the position. */
  private async leaseWithin(limitMs: number, position: Position): Promise<PoolClient> {
    const { pool } = this;
    const { answered } = pool;
    const leasing = this.lease(position);
    const client = await within(leasing, limitMs);
    if (client !== LATE) return client;
    leasing.then(
      (late) => late.release(),
      () => undefined,
    );
    // All connections are busy, but the replica answers on them.
    const isBusy = pool.waitingCount > 0 && pool.answered > answered;
    throw new NotRead(isBusy ? 'refused' : 'away');
  }

  private async lease(position: Position): Promise<PoolClient> {
    const client = await this.pool.connect();
    try {
      await this.check(client, position);
      return client;
    } catch (error) {
      // A failure closes the connection: through a proxy, the next one may lead to a server that is ready.
      client.release(reasonOf(error) === 'behind' ? undefined : (error as Error));
      // An ordinary error of the check, such as a missing right, would meet every read.
      throw reasonOf(error) === 'refused' && !isFaultOfStatement(error) ? new NotRead('away', error) : error;
    }
  }

  /** @throws NotRead when the connection's server is no standby that has replayed the position within REPLAY_MS */
  private async check(client: ClientBase, { lsn, origin }: Position): Promise<void> {
    const deadline = performance.now() + REPLAY_MS;
    if (this.origins.get(client) !== origin) {
      const [row] = await this.statements.execute<[boolean, string]>(client, ORIGIN, []);
      const [isStandby, followed] = row as [boolean, string];
      if (!isStandby) throw new NotRead('primary');
      if (followed !== origin) throw new NotRead('foreign');
      this.origins.set(client, origin);
    }
    for (;;) {
      const [row] = await this.statements.execute<[boolean, number | null]>(client, BEHIND, [lsn]);
      const [isStandby, behind] = row as [boolean, number | null];
      if (!isStandby) throw new NotRead('primary');
      this.behindBytes = Math.max(0, behind ?? this.behindBytes);
      if (behind !== null && behind <= 0) return;
      if (performance.now() >= deadline) throw new NotRead('behind');
      await sleep(REPLAY_INTERVAL_MS);
    }
  }
}

/** SQLSTATEs that are the fault of one statement: cancelled (also by the replay), and a change or lock on a standby. */
const FAULTS_OF_STATEMENTS = new Set<unknown>(['57014', '25006']);

/** Whether an error concerns the replica (`away`) or only one statement (`refused`). */
function reasonOf(error: unknown): FallbackReason {
  if (error instanceof NotRead) return error.reason;
  // Through TypeORM a connection failure surfaces as ApiError.
  const cause = error instanceof ApiError ? error.cause : error;
  return isConnectionFailure(cause) && !isFaultOfStatement(cause) ? 'away' : 'refused';
}

function isFaultOfStatement(error: unknown): boolean {
  const { driverError, code } = (error ?? {}) as { driverError?: { code?: unknown }; code?: unknown };
  return FAULTS_OF_STATEMENTS.has(driverError?.code ?? code);
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
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((done) => {
    // Timers run before sockets are read, so wait until these have been read once.
    timer = setTimeout(() => setImmediate(() => setImmediate(done, LATE)), limitMs);
  });
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
