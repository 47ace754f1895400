import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, PoolClient } from 'pg';
import type { QueryFailedError } from 'typeorm';
import { ApiError } from '#errors';
import {
  Batches,
  answerTimeoutMs,
  directly,
  executeOf,
  isConnectionFailure,
  parseDatabaseUri,
  POSTGRESQL_URI,
  type PostgresConfig,
  ReadReplicas,
  rootFault,
  serverConnectionSettings,
  serverOf,
  ServicePool,
  type ServicePoolOptions,
  type Statement,
  StatementRunner,
} from '#postgres';
import { LimitedWarnings } from '#runtime';
import { optional, parseList, type SettingsOf } from '#settings';

export const REPLICA_SETTINGS = {
  databaseReplicaUrls: {
    ...optional(
      'DATABASE_REPLICA_URLS',
      POSTGRESQL_URI,
      'Read replicas (streaming standbys), separated by commas. Lists are read from them, and show everything that was ' +
        'committed before the request; everything else uses DATABASE_URL.',
      parseList(parseDatabaseUri),
      [] as string[],
    ),
    needs: 'DATABASE_URL',
  },
};

export type ReplicaConfig = PostgresConfig & SettingsOf<typeof REPLICA_SETTINGS>;

/** Longest time in ms that a read waits for the position of the primary, and then until a replica has replayed it. */
const POSITION_MS = 20;
const REPLAY_MS = 20;

/**
 * Time in ms that a replica has to provide a connection which has replayed the position, and again for the read. If the read
 * is late, the replica must provide another such connection within PROOF_MS.
 */
const ANSWER_MS = 50;
const PROOF_MS = 20;

const REPLAY_INTERVAL_MS = 1;

/** Longest time in ms to connect, and for the primary to tell its position. */
const CONNECT_MS = 1_000;

/** Time in ms after which one read tries a replica that has failed. */
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
  text: `SELECT pg_is_in_recovery()::text, system_identifier || '/' || current_database() || '/' ||
      upper(lpad(to_hex(greatest(timeline_id, min_recovery_end_timeline,
        (SELECT received_tli FROM pg_stat_wal_receiver))), 8, '0'))
    FROM pg_control_system(), pg_control_checkpoint(), pg_control_recovery()`,
};

const HAS_REPLAYED: Statement = {
  name: 'replica_has_replayed',
  text: 'SELECT pg_is_in_recovery()::text, (pg_last_wal_replay_lsn() >= $1::pg_lsn)::text',
};

/** A replica cannot serve reads. The message is the reason, for the log. */
class NotUsable extends Error {}

/**
 * The read replicas. If no replica can serve a read at once and correctly, the primary serves it, within tens of ms.
 *
 * The read index makes the results current: a replica must have replayed the position of the primary, so that a read
 * there shows everything that was committed before the read arrived. All reads that wait at the same moment share one
 * query for the position, on a connection of their own. One query is in flight at a time.
 */
export class Replicas extends ReadReplicas implements OnApplicationShutdown {
  private readonly warnings = new LimitedWarnings(new Logger(Replicas.name), WARNING_INTERVAL_MS);
  readonly all: readonly Replica[];
  fallbacks = 0;
  private readonly pools: ServicePool[] = [];
  private readonly primary: StatementRunner;
  private readonly positions = new Batches<void, Position>(async () => [await this.askPosition()], {
    size: 1,
    concurrency: 1,
    waiting: 1,
    waitMs: CONNECT_MS,
  });
  private next = 0;

  constructor(config: ReplicaConfig) {
    super();
    const execute = executeOf(config);
    const open = (uri: string, options: ServicePoolOptions): StatementRunner => {
      const settings = serverConnectionSettings(config, uri, true, { lock_timeout: LOCK_TIMEOUT_MS }, CONNECT_MS);
      const pool = new ServicePool({ ...settings, ...options });
      // The pool replaces an idle connection that breaks.
      pool.on('error', () => undefined);
      this.pools.push(pool);
      return new StatementRunner(pool, execute);
    };
    const primary = directly(config).databaseUrl as string;
    this.primary = open(primary, { max: 1, answerTimeoutMs: CONNECT_MS });
    const options = { answerTimeoutMs: answerTimeoutMs(config) };
    this.all = config.databaseReplicaUrls.map((uri) => new Replica(serverOf(uri), open(uri, options)));
  }

  async onApplicationShutdown(): Promise<void> {
    for (const pool of this.pools) pool.setSilence(new Error('Connection terminated: the service stops'));
    await Promise.all(this.pools.map((pool) => pool.end()));
  }

  /** The replica has replayed everything that the primary had flushed at a moment after this call. Usable ones take turns. */
  override async read<Result>(
    onReplica: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
    onPrimary: () => Promise<Result>,
  ): Promise<Result> {
    const usable = this.all.filter(({ isUsable }) => isUsable);
    const replica = usable[this.next++ % usable.length];
    replica?.pause();
    try {
      const position = replica && (await within(this.positions.run(undefined, 'position'), POSITION_MS));
      if (replica !== undefined && position !== undefined) return await replica.read(position, onReplica);
    } catch (error) {
      // The replica remembers whether it was its own fault.
      const fault = rootFault(error);
      if (fault?.code === READ_ONLY) {
        const { query } = causeOf(error) as QueryFailedError;
        this.warnings.warn(`A statement for replicas runs on the primary, because ${fault.message}: ${query}`);
      }
    }
    this.fallbacks++;
    return onPrimary();
  }

  /** @throws Error when the primary acknowledges commits before they are in the log */
  private async askPosition(): Promise<Position> {
    const [[lsn, origin, synchronousCommit]] = (await this.primary.run(POSITION, [])) as [[string, string, string]];
    if (synchronousCommit !== 'off') return { lsn, origin };
    this.warnings.warn('Replicas are not used: they need synchronous_commit=on in PostgreSQL.');
    throw new Error('synchronous_commit is off on the primary');
  }
}

/**
 * One read replica. Before each read, its connection is checked: the server must be a standby that has replayed the given
 * position. Every connection is checked, because a proxy may lead each one to another server. A replica that fails a read,
 * or is late, gets no more but one each PAUSE_MS, until one succeeds.
 */
class Replica {
  private readonly log = new Logger(Replica.name);
  private readonly origins = new WeakMap<ClientBase, string>();
  /** When the next read may try a replica that is not ready, by `performance.now()`. */
  private triedAgainAt = 0;
  /** Why the replica is not used, as the log says. */
  private logged: string | undefined;
  isReady = true;
  reads = 0;

  constructor(
    readonly name: string,
    private readonly statements: StatementRunner,
  ) {}

  get isUsable(): boolean {
    return this.isReady || performance.now() >= this.triedAgainAt;
  }

  /** @throws any error when the replica is late or fails; `work`, which releases the connection, may still be running */
  async read<Result>(
    position: Position,
    work: (client: PoolClient, statements: StatementRunner) => Promise<Result>,
  ): Promise<Result> {
    const isTrial = !this.isReady;
    try {
      const client = await this.leaseWithin(ANSWER_MS, position);
      if (isTrial) {
        this.isReady = true;
        if (this.logged !== undefined) this.log.log(`Replica ${this.name} is used again.`);
        this.logged = undefined;
      }
      const answer = work(client, this.statements).then((result) => ({ result }));
      if ((await within(answer, ANSWER_MS)) === undefined) {
        (await this.leaseWithin(PROOF_MS, position)).release();
      }
      const { result } = await answer;
      this.reads++;
      return result;
    } catch (error) {
      if (isFaultOfReplica(error)) {
        // A replica may often be behind for a moment, so only what a trial confirms is logged.
        if (isTrial) this.explain(error as NodeJS.ErrnoException);
        this.isReady = false;
      }
      throw error;
    }
  }

  /** Must be called when a read has chosen the replica: one that is not ready gets no other for PAUSE_MS. */
  pause(): void {
    this.triedAgainAt = performance.now() + PAUSE_MS;
  }

  private explain(error: NodeJS.ErrnoException): void {
    const { message, code } = error;
    const reason = error instanceof NotUsable ? message : `it cannot be reached (${(message || code)?.split('\n')[0]})`;
    if (reason === this.logged) return;
    this.logged = reason;
    this.log.warn(`Replica ${this.name} is not used: ${reason}. Other replicas or the primary serve its reads.`);
  }

  /** Takes a connection whose server has replayed the position. */
  private async leaseWithin(limitMs: number, position: Position): Promise<PoolClient> {
    const { pool } = this.statements;
    const { answered } = pool;
    const leasing = this.lease(position);
    const client = await within(leasing, limitMs);
    if (client !== undefined) return client;
    leasing.then(
      (late) => late.release(),
      () => undefined,
    );
    // If all connections are busy, but the replica responds on them, it stays ready.
    if (pool.waitingCount > 0 && pool.answered > answered) throw new Error('all connections are busy');
    throw new NotUsable('it does not respond in time');
  }

  private async lease(position: Position): Promise<PoolClient> {
    const client = await this.statements.pool.connect();
    try {
      if (await this.hasReplayed(client, position)) return client;
    } catch (error) {
      // Through a proxy, the next connection may lead to a server that is ready.
      client.release(error as Error);
      // An ordinary error of the check, such as a missing right, would meet every read.
      throw error instanceof NotUsable || isFaultOfStatement(error) ? error : new NotUsable((error as Error).message);
    }
    client.release();
    throw new NotUsable('it is behind the primary');
  }

  /** @throws NotUsable when the connection's server is no standby of the primary */
  private async hasReplayed(client: ClientBase, { lsn, origin }: Position): Promise<boolean> {
    const deadline = performance.now() + REPLAY_MS;
    const ask = async (statement: Statement, values: unknown[]): Promise<string> => {
      const [[isStandby, answer]] = (await this.statements.execute(client, statement, values)) as [[string, string]];
      if (isStandby !== 'true') throw new NotUsable('it is no standby');
      return answer;
    };
    if (this.origins.get(client) !== origin) {
      if ((await ask(ORIGIN, [])) !== origin) {
        throw new NotUsable('it follows another database or timeline than the primary');
      }
      this.origins.set(client, origin);
    }
    for (;;) {
      if ((await ask(HAS_REPLAYED, [lsn])) === 'true') return true;
      if (performance.now() >= deadline) return false;
      await sleep(REPLAY_INTERVAL_MS);
    }
  }
}

function isFaultOfReplica(error: unknown): boolean {
  return error instanceof NotUsable || (isConnectionFailure(causeOf(error)) && !isFaultOfStatement(error));
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
