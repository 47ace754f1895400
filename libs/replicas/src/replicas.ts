import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, PoolClient } from 'pg';
import { ApiError } from '#errors';
import {
  answerTimeoutMs,
  directly,
  type Execute,
  executeOf,
  isConnectionFailure,
  ReadReplicas,
  rootFault,
  serverConnectionSettings,
  ServicePool,
  type ServicePoolOptions,
  type Statement,
  StatementRunner,
} from '#postgres';
import { LimitedWarnings } from '#runtime';
import type { Config } from '#settings';
import { Batches } from '#shared-statements';

/** Longest time in ms that a read waits for the position of the primary, and then until a replica has replayed it. */
const POSITION_MS = 20;
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
const TRIAL_MS = 1_000;
const PAUSE_MS = 500;

/**
 * Longest time in ms that a statement waits for a lock on a replica. Only the replay of a schema change holds locks for
 * which reads wait.
 */
const LOCK_TIMEOUT_MS = 50;

/** SQLSTATE of a change, a lock or `nextval` on a standby. */
const READ_ONLY = '25006';

/** SQLSTATEs that are the fault of one statement: cancelled (also by the replay), and READ_ONLY. */
const FAULTS_OF_STATEMENTS = new Set<unknown>(['57014', READ_ONLY]);

/** Shortest time in ms between two warnings of refused statements, or of a primary with which replicas cannot be used. */
const WARNING_INTERVAL_MS = 60_000;

/** A position in the primary's write-ahead log: how much was flushed at one moment. */
interface Position {
  /** The address behind the last flushed byte (`pg_lsn`). Every acknowledged commit lies before it. */
  readonly lsn: string;
  /** The database and the timeline to which the address belongs; a failover begins a new timeline. */
  readonly origin: string;
}

// The name of a log file begins with the timeline, as eight hexadecimal digits.
const POSITION: Statement = {
  name: 'read_index_position',
  text: `SELECT lsn::text, system_identifier || '/' || current_database() || '/' || substr(pg_walfile_name(lsn), 1, 8),
      current_setting('synchronous_commit')
    FROM pg_current_wal_flush_lsn() AS lsn, pg_control_system()`,
};

// The latest of three timelines: of the last restart point, of the last page written, and of the replication stream, which
// only roles with pg_read_all_stats see. None of them is ahead of the timeline that the replica follows.
const ORIGIN: Statement = {
  name: '',
  text: `SELECT pg_is_in_recovery(), system_identifier || '/' || current_database() || '/' ||
      upper(lpad(to_hex(greatest(timeline_id, min_recovery_end_timeline,
        (SELECT received_tli FROM pg_stat_wal_receiver))), 8, '0'))
    FROM pg_control_system(), pg_control_checkpoint(), pg_control_recovery()`,
};

const HAS_REPLAYED: Statement = {
  name: 'replica_has_replayed',
  text: 'SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= $1::pg_lsn',
};

/** A replica did not serve a read, so the primary must. The message is the reason, for the log. */
class NotRead extends Error {
  /** @param isUsable whether the replica may be asked again at once */
  constructor(
    message: string,
    readonly isUsable = false,
  ) {
    super(message);
  }
}

/**
 * The read replicas. If no replica can serve a read at once and correctly, the primary serves it. So a replica can
 * neither fail a read nor delay it by more than tens of ms.
 *
 * The read index makes the results current: a replica must have replayed the position of the primary, so that a read
 * there shows everything that was committed before the read arrived. All reads that wait at the same moment share one
 * query for the position, on a connection of their own. One query is in flight at a time.
 */
export class Replicas extends ReadReplicas implements OnApplicationShutdown {
  private readonly warnings = new LimitedWarnings(new Logger(Replicas.name), WARNING_INTERVAL_MS);
  readonly all: readonly Replica[];
  /** Number of reads that the primary served. */
  fallbacks = 0;
  private readonly pools: ServicePool[] = [];
  private readonly primary: StatementRunner;
  private readonly positions = new Batches<void, Position>(async () => [await this.askPosition()], {
    size: 1,
    concurrency: 1,
    waiting: 1,
    waitMs: TRIAL_MS,
  });
  private next = 0;

  constructor(config: Config) {
    super();
    const execute = executeOf(config);
    const createPool = (uri: string, options: ServicePoolOptions): ServicePool => {
      const settings = serverConnectionSettings(config, uri, true, { lock_timeout: LOCK_TIMEOUT_MS }, TRIAL_MS);
      const pool = new ServicePool({ ...settings, ...options });
      // The pool replaces an idle connection that breaks.
      pool.on('error', () => undefined);
      this.pools.push(pool);
      return pool;
    };
    const primary = directly(config).databaseUrl as string;
    this.primary = new StatementRunner(createPool(primary, { max: 1, answerTimeoutMs: TRIAL_MS }), execute);
    this.all = config.databaseReplicaUrls.map((uri) => {
      const pool = createPool(uri, { answerTimeoutMs: answerTimeoutMs(config) });
      const { host, searchParams } = new URL(uri);
      return new Replica(host || String(searchParams.get('host')), pool, execute, () => this.position());
    });
  }

  /** Closes all connections at once. */
  async onApplicationShutdown(): Promise<void> {
    const stopped = this.all.map((replica) => replica.stop());
    for (const pool of this.pools) pool.setSilence(new Error('Connection terminated: the service stops'));
    await Promise.all(stopped);
    await Promise.all(this.pools.map((pool) => pool.end()));
  }

  /** The replica has replayed everything that the primary had flushed at a moment after this call. Ready ones take turns. */
  override async read<Result>(
    onReplica: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
    onPrimary: () => Promise<Result>,
    text?: string,
  ): Promise<Result> {
    const ready = this.all.filter(({ isReady }) => isReady);
    const replica = ready[this.next++ % ready.length];
    try {
      const position = replica && (await within(this.position(), POSITION_MS));
      if (replica !== undefined && position !== undefined) return await replica.read(position, onReplica);
    } catch (error) {
      // The replica remembers whether it was its own fault.
      const fault = rootFault(error);
      if (fault?.code === READ_ONLY) {
        const { query = text } = causeOf(error) as { query?: string };
        this.warnings.warn(`A statement for replicas runs on the primary, because ${fault.message}: ${query}`);
      }
    }
    this.fallbacks++;
    return onPrimary();
  }

  /**
   * The position at a moment after this call.
   *
   * @throws NotRead when the primary does not respond, or acknowledges commits before they are in the log
   *   (`synchronous_commit=off`)
   */
  private async position(): Promise<Position> {
    try {
      return await this.positions.run(undefined, 'position');
    } catch {
      throw new NotRead('the position of the primary is not known', true);
    }
  }

  private async askPosition(): Promise<Position> {
    const [row] = await this.primary.run<[lsn: string, origin: string, commit: string]>(POSITION, []);
    const [lsn, origin, synchronousCommit] = row as [string, string, string];
    if (synchronousCommit !== 'off') return { lsn, origin };
    this.warnings.warn('Replicas are not used: they need synchronous_commit=on in PostgreSQL.');
    throw new Error('synchronous_commit is off on the primary');
  }
}

/**
 * One read replica. Before each read, its connection is checked: the server must be a standby that has replayed the given
 * position. Every connection is checked, because a proxy may lead each one to another server. A replica that fails a read,
 * or is late, gets no more until a trial finds it ready; trials are repeated with pauses.
 */
class Replica {
  private readonly log = new Logger(Replica.name);
  private readonly statements: StatementRunner;
  /** The origin that each connection was found to follow. */
  private readonly origins = new WeakMap<ClientBase, string>();
  private readonly stopping = new AbortController();
  /** Runs while the replica is not ready. */
  private trials: Promise<void> | undefined;
  isReady = true;
  /** Number of reads that the replica has served. */
  reads = 0;

  /**
   * @param name its host, for log and metrics
   * @param position returns the position of the primary, for trials
   */
  constructor(
    readonly name: string,
    private readonly pool: ServicePool,
    execute: Execute,
    private readonly position: () => Promise<Position>,
  ) {
    this.statements = new StatementRunner(pool, execute);
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
   * @throws any error when the replica is late or fails; `work` may still be running
   */
  async read<Result>(
    position: Position,
    work: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
  ): Promise<Result> {
    try {
      const answer = work(await this.leaseWithin(ANSWER_MS, position), this.statements).then((result) => ({ result }));
      if ((await within(answer, ANSWER_MS)) === undefined) {
        (await this.leaseWithin(PROOF_MS, position)).release();
      }
      const { result } = await answer;
      this.reads++;
      return result;
    } catch (error) {
      if (this.isReady && isFaultOfReplica(error)) {
        this.isReady = false;
        this.trials = this.tryUntilReady();
      }
      throw error;
    }
  }

  /** Logs a reason only when a second trial confirms it: a replica may often be behind for a moment. */
  private async tryUntilReady(): Promise<void> {
    const { signal } = this.stopping;
    let logged: string | undefined;
    for (let trial = 1; !signal.aborted; trial++) {
      try {
        (await this.leaseWithin(TRIAL_MS, await this.position())).release();
        this.isReady = true;
        if (logged !== undefined) this.log.log(`Replica ${this.name} is used again.`);
        return;
      } catch (error) {
        const { message, code } = error as NodeJS.ErrnoException;
        const reason =
          error instanceof NotRead ? message : `it cannot be reached (${(message || code)?.split('\n')[0]})`;
        if (trial > 1 && reason !== logged && !signal.aborted) {
          logged = reason;
          this.log.warn(`Replica ${this.name} is not used: ${reason}. Other replicas or the primary serve its reads.`);
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
    if (client !== undefined) return client;
    leasing.then(
      (late) => late.release(),
      () => undefined,
    );
    // If all connections are busy, but the replica responds on them, it stays ready.
    throw new NotRead('it does not respond in time', pool.waitingCount > 0 && pool.answered > answered);
  }

  private async lease(position: Position): Promise<PoolClient> {
    const client = await this.pool.connect();
    try {
      if (await this.hasReplayed(client, position)) return client;
    } catch (error) {
      // Through a proxy, the next connection may lead to a server that is ready.
      client.release(error as Error);
      // An ordinary error of the check, such as a missing right, would meet every read.
      throw error instanceof NotRead || isFaultOfStatement(error) ? error : new NotRead((error as Error).message);
    }
    client.release();
    throw new NotRead('it is behind the primary');
  }

  /** @throws NotRead when the connection's server is no standby of the primary */
  private async hasReplayed(client: ClientBase, { lsn, origin }: Position): Promise<boolean> {
    const deadline = performance.now() + REPLAY_MS;
    const ask = async (statement: Statement, values: unknown[]): Promise<unknown> => {
      const [row] = await this.statements.execute<[boolean, unknown]>(client, statement, values);
      const [isStandby, answer] = row as [boolean, unknown];
      if (!isStandby) throw new NotRead('it is no standby');
      return answer;
    };
    if (this.origins.get(client) !== origin) {
      if ((await ask(ORIGIN, [])) !== origin) {
        throw new NotRead('it follows another database or timeline than the primary');
      }
      this.origins.set(client, origin);
    }
    for (;;) {
      if ((await ask(HAS_REPLAYED, [lsn])) === true) return true;
      if (performance.now() >= deadline) return false;
      await sleep(REPLAY_INTERVAL_MS);
    }
  }
}

/** Whether an error concerns the replica, and not only one statement. */
function isFaultOfReplica(error: unknown): boolean {
  if (error instanceof NotRead) return !error.isUsable;
  return isConnectionFailure(causeOf(error)) && !isFaultOfStatement(error);
}

function isFaultOfStatement(error: unknown): boolean {
  return FAULTS_OF_STATEMENTS.has(rootFault(error)?.code);
}

/** The error itself. Through TypeORM a connection failure surfaces as ApiError. */
function causeOf(error: unknown): unknown {
  return error instanceof ApiError ? error.cause : error;
}

/**
 * Waits for a promise at most `limitMs` ms; then undefined. A late promise is not cancelled, and its rejection is ignored. Data
 * that arrived while this process was busy is in time.
 *
 * @throws the error of the promise, if it rejects in time
 */
async function within<Result extends object>(promise: Promise<Result>, limitMs: number): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((done) => {
    // Timers run before sockets are read, so wait until these have been read once.
    timer = setTimeout(() => setImmediate(() => setImmediate(done, undefined)), limitMs);
  });
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
