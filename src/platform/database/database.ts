import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { ClientBase, Pool } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { setTimeout as sleep } from 'node:timers/promises';
import { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';
import { asUnavailable, isConnectionFailure } from './connections/connection-errors.js';
import { StatementRunner } from './connections/statement-runner.js';
import { ANSWER_GRACE_MS } from './data-source.js';
import { Heartbeat } from './connections/heartbeat.js';
import { chooseExecute } from './connections/execute.js';
import type { Execute, Statement } from './connections/statement.js';
import { isSchemaOfThisCode } from './schema.js';

export type { Statement } from './connections/statement.js';

/** Work on one connection, in one transaction. */
export interface Transaction {
  /** Runs a statement; rows are arrays of columns. */
  run<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]>;
  /** TypeORM in the same transaction. */
  readonly manager: EntityManager;
}

/** What the database is able to do. */
export type Readiness = 'ready' | 'away' | 'another schema';

/** Least time in ms between two looks at the database's readiness, and the longest that one takes. */
const READINESS_INTERVAL_MS = 1_000;
const READINESS_TIMEOUT_MS = 1_000;

const APPLIED_MIGRATIONS: Statement = { name: 'schema_migration_names', text: 'SELECT name FROM schema_migration' };

/** SQLSTATE of a table that does not exist. */
const UNDEFINED_TABLE = '42P01';

/** A database: what runs statements on it, and what listens whether it is there. The embedded engine has no heartbeat: it cannot go without this process. */
interface Source {
  readonly statements: StatementRunner;
  readonly heartbeat: Heartbeat | undefined;
}

/**
 * Statements straight on the connections of the application's data source, for the paths that every request walks.
 * Rows are arrays of columns; bigint columns are strings, exact.
 *
 * All methods throw ApiError UNAVAILABLE, with the original as `cause`, when the database is away, overloaded or
 * read-only, no connection is free in time, or the statement is cancelled. Its message tells whether a change may have
 * been made. Other errors of PostgreSQL pass as they are.
 */
@Injectable()
export class Database implements OnModuleInit, OnApplicationShutdown {
  private readonly primary: Source;
  private readonly replicas: readonly Source[];
  private nextReplica = 0;
  private probe: Promise<Readiness> = Promise.resolve('away');
  private nextProbeAt = -Infinity;

  /** Longest time in ms that a request waits for its turn, and that a statement waits for a connection. */
  readonly acquireTimeoutMs: number;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    this.acquireTimeoutMs = config.acquireTimeoutMs;
    const { master, slaves } = dataSource.driver as unknown as { master: Pool; slaves: Pool[] };
    const timeoutMs = config.statementTimeoutMs + ANSWER_GRACE_MS;
    const askAgain = (): void => void (this.nextProbeAt = -Infinity);
    const execute = chooseExecute(config.fastPaths.includes('prepared-queries'));
    this.primary = toSource('The database', config.databaseUrl, master, timeoutMs, execute, askAgain);
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

  /** Whether the primary says nothing at all; false while it refuses, and so answers. */
  get isSilent(): boolean {
    return this.primary.heartbeat?.silence !== undefined;
  }

  /** Connections to the primary, those of them that nobody uses, and statements that wait for one. */
  get load(): StatementRunner['load'] {
    return this.primary.statements.load;
  }

  /** Runs a statement that changes nothing; on a replica if there are any, which may be behind. */
  async read<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const replica = this.replicas[this.nextReplica];
    if (replica !== undefined) {
      this.nextReplica = (this.nextReplica + 1) % this.replicas.length;
      try {
        return await replica.statements.run<Row>(statement, values);
      } catch (error) {
        // A replica that is away must not be felt; the primary answers instead.
        if (!isConnectionFailure(error) && !isUnavailable(error)) throw error;
      }
    }
    return this.readPrimary<Row>(statement, values);
  }

  /** Runs a statement that changes nothing, on the primary: it sees everything that is committed. */
  async readPrimary<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    try {
      return await this.primary.statements.run<Row>(statement, values);
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /** Runs a statement that changes something, on the primary. It is committed when the promise is fulfilled. */
  async write<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    let isSent = false;
    try {
      return await this.primary.statements.run<Row>(statement, values, () => (isSent = true));
    } catch (error) {
      throw asUnavailable(error, isSent);
    }
  }

  /**
   * Runs work in one transaction on the primary: committed when its promise is fulfilled, rolled back when it throws.
   * Inside, use the given transaction alone: the embedded engine has one connection, and would wait for itself.
   */
  async transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    const { statements } = this.primary;
    statements.assertAnswers();
    const queryRunner = this.dataSource.createQueryRunner('master');
    try {
      const client = (await queryRunner.connect()) as ClientBase;
      await queryRunner.startTransaction();
      const result = await work({
        run: (statement, values) => statements.execute(client, statement, values),
        manager: queryRunner.manager,
      });
      await queryRunner.commitTransaction();
      return result;
    } catch (error) {
      const answer = asUnavailable(error);
      // What went wrong first is what the caller must hear. Who is away is not asked to roll back: its connection is
      // closed, which does the same.
      if (queryRunner.isTransactionActive && !isUnavailable(answer)) {
        await queryRunner.rollbackTransaction().catch(() => undefined);
      }
      throw answer;
    } finally {
      await queryRunner.release();
    }
  }

  /**
   * Whether requests can be served. Anybody may ask, so the database is asked once a second at the most, and for all who
   * ask at the same moment; within READINESS_TIMEOUT_MS it answers, or is away.
   */
  readiness(): Promise<Readiness> {
    if (performance.now() >= this.nextProbeAt) {
      this.nextProbeAt = performance.now() + READINESS_INTERVAL_MS;
      this.probe = this.askReadiness();
    }
    return this.probe;
  }

  private async askReadiness(): Promise<Readiness> {
    const answer = this.primary.statements.run<[name: string]>(APPLIED_MIGRATIONS, []).then(
      (rows): Readiness => {
        const names = rows.map(([name]) => name);
        return isSchemaOfThisCode(this.dataSource, names) ? 'ready' : 'another schema';
      },
      (error: { code?: string }): Readiness => (error.code === UNDEFINED_TABLE ? 'another schema' : 'away'),
    );
    const stop = new AbortController();
    const tooLate = sleep(READINESS_TIMEOUT_MS, 'away' as const, { signal: stop.signal }).catch(() => 'away' as const);
    return Promise.race([answer, tooLate]).finally(() => stop.abort());
  }
}

function toSource(
  name: string,
  url: string | undefined,
  pool: Pool,
  timeoutMs: number,
  execute: Execute,
  onReturn: () => void = () => undefined,
): Source {
  const statements = new StatementRunner(pool, timeoutMs, execute, () => heartbeat?.silence);
  const heartbeat =
    url === undefined
      ? undefined
      : new Heartbeat(name, url, () => {
          statements.replace();
          onReturn();
        });
  return { statements, heartbeat };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError && error.definition === UNAVAILABLE;
}
