import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';
import { answerTimeoutMs } from './connection-settings.js';
import { asUnavailable, isConnectionFailure } from './connections/connection-errors.js';
import { chooseExecute } from './connections/execute.js';
import { Heartbeat } from './connections/heartbeat.js';
import type { ServicePool } from './connections/service-pool.js';
import type { Execute, Statement } from './connections/statement.js';
import { StatementRunner } from './connections/statement-runner.js';
import { type Readiness, ReadinessProbe } from './readiness-probe.js';

export type { Statement } from './connections/statement.js';

/** An open transaction on one connection. */
export interface Transaction {
  /** Runs a statement, which is parsed anew each time. Each row is an array of columns. */
  run<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]>;
  /** TypeORM's entity manager in the same transaction. */
  readonly manager: EntityManager;
}

/** The primary or a replica. The embedded engine has no heartbeat: it runs in this process, so it is always reachable. */
interface Source {
  readonly statements: StatementRunner;
  readonly heartbeat: Heartbeat | undefined;
}

/**
 * Runs SQL statements on the primary and its replicas, without TypeORM. Each row is an array of columns; bigint columns
 * are exact decimal strings.
 *
 * Every method that runs a statement throws ApiError UNAVAILABLE when the database is unreachable, overloaded or
 * read-only, no connection is free in time, or the statement is cancelled. The original error is its `cause`; its message
 * says whether a change may have been made. Other errors of PostgreSQL are thrown unchanged.
 */
@Injectable()
export class Database implements OnModuleInit, OnApplicationShutdown {
  private readonly primary: Source;
  private readonly replicas: readonly Source[];
  private nextReplica = 0;
  private readonly readinessProbe: ReadinessProbe;

  /** Longest time in ms that a request waits in a queue, and that a statement waits for a connection. */
  readonly acquireTimeoutMs: number;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    this.acquireTimeoutMs = config.acquireTimeoutMs;
    const { master, slaves } = dataSource.driver as unknown as { master: ServicePool; slaves: ServicePool[] };
    const timeoutMs = answerTimeoutMs(config);
    const onReturn = (): void => this.readinessProbe.expire();
    const execute = chooseExecute(config.fastPaths.includes('prepared-queries'));
    this.primary = toSource('The database', config.databaseUrl, master, timeoutMs, execute, onReturn);
    this.readinessProbe = new ReadinessProbe(this.primary.statements, dataSource);
    this.replicas = slaves.map((pool, index) =>
      toSource(`Read replica ${index + 1}`, config.databaseReplicaUrls[index], pool, timeoutMs, execute),
    );
  }

  onModuleInit(): void {
    for (const { heartbeat } of [this.primary, ...this.replicas]) heartbeat?.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([this.primary, ...this.replicas].map(async ({ heartbeat }) => heartbeat?.stop()));
  }

  /** Whether the primary sends no answer at all. False while it refuses connections: a refusal is an answer. */
  get isSilent(): boolean {
    return this.primary.heartbeat?.isSilent === true;
  }

  /** Counts of connections to the primary, of idle ones among them, and of statements that wait for a connection. */
  get load(): StatementRunner['load'] {
    return this.primary.statements.load;
  }

  /**
   * Runs a statement that changes nothing, on the replicas in turn. A replica may lag behind the primary. The primary
   * answers when no replica is configured or the replica is unreachable.
   */
  async read<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const replica = this.replicas[this.nextReplica];
    if (replica !== undefined) {
      this.nextReplica = (this.nextReplica + 1) % this.replicas.length;
      try {
        return await replica.statements.run<Row>(statement, values);
      } catch (error) {
        if (!isConnectionFailure(error) && !isUnavailable(error)) throw error;
      }
    }
    return this.readPrimary<Row>(statement, values);
  }

  /** Lets TypeORM read from a replica, which may be behind. The primary is read if there is none, or if it fails. */
  async readReplica<Result>(work: (manager: EntityManager) => Promise<Result>): Promise<Result> {
    if (this.replicas.length > 0) {
      const queryRunner = this.dataSource.createQueryRunner('slave');
      try {
        return await work(queryRunner.manager);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
      } finally {
        await queryRunner.release();
      }
    }
    return work(this.dataSource.manager);
  }

  /** Runs a statement that changes nothing, on the primary, where it sees every committed change. */
  async readPrimary<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    try {
      return await this.primary.statements.run<Row>(statement, values);
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /** Runs a statement that changes something, on the primary. The change is committed when the promise is fulfilled. */
  async write<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    let isSent = false;
    try {
      return await this.primary.statements.run<Row>(statement, values, () => (isSent = true));
    } catch (error) {
      throw asUnavailable(error, isSent);
    }
  }

  /**
   * Runs work in one transaction on the primary. The transaction is committed when the promise of `work` is fulfilled, and
   * rolled back when it is rejected. `work` must use only the given transaction: the embedded engine has one connection,
   * so any other statement would wait for the transaction's end, and the transaction for it.
   */
  async transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    const { statements } = this.primary;
    const queryRunner = this.dataSource.createQueryRunner('master');
    try {
      const client = (await queryRunner.connect()) as ClientBase;
      await queryRunner.startTransaction();
      const result = await work({
        // Without a name nothing is prepared that could be stale: a failed statement would undo the whole transaction.
        run: (statement, values) => statements.execute(client, { ...statement, name: '' }, values),
        manager: queryRunner.manager,
      });
      await queryRunner.commitTransaction();
      return result;
    } catch (error) {
      const answer = asUnavailable(error);
      // An unreachable database gets no ROLLBACK; it rolls back when the connection closes. An error of ROLLBACK is
      // ignored, because the caller needs the first error.
      if (queryRunner.isTransactionActive && !isUnavailable(answer)) {
        await queryRunner.rollbackTransaction().catch(() => undefined);
      }
      throw answer;
    } finally {
      await queryRunner.release();
    }
  }

  /** Whether the database can serve requests. Answers within 1 s, from an answer of the last second if there is one. */
  readiness(): Promise<Readiness> {
    return this.readinessProbe.readiness();
  }
}

function toSource(
  name: string,
  url: string | undefined,
  pool: ServicePool,
  timeoutMs: number,
  execute: Execute,
  onReturn: () => void = () => undefined,
): Source {
  const statements = new StatementRunner(pool, timeoutMs, execute);
  if (url === undefined) return { statements, heartbeat: undefined };
  const heartbeat = new Heartbeat(
    name,
    url,
    (error) => pool.beginSilence(error),
    () => {
      pool.endSilence();
      onReturn();
    },
  );
  return { statements, heartbeat };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError && error.definition === UNAVAILABLE;
}
