import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { ClientBase, Pool } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { setTimeout as sleep } from 'node:timers/promises';
import { Config } from '../../config.js';
import { asUnavailable, isConnectionFailure } from './connection-errors.js';
import { Connections } from './connections.js';
import { PreparedQuery, type Statement } from './prepared-query.js';
import { isSchemaOfThisCode } from './schema.js';

export type { Statement } from './prepared-query.js';

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

/** Time in ms beyond PostgreSQL's own time-out after which an answer is not waited for any longer. */
const ANSWER_GRACE_MS = 1_000;

/**
 * Statements straight on the connections of the application's data source, for the paths that every request walks.
 * Rows are arrays of columns; bigint columns are strings, exact.
 *
 * All methods throw ApiError UNAVAILABLE, with the original as `cause`, when the database is away, overloaded or
 * read-only, no connection is free in time, or the statement is cancelled. Other errors of PostgreSQL pass as they are.
 */
@Injectable()
export class Database implements OnModuleDestroy {
  private readonly primary: Connections;
  private readonly replicas: readonly Connections[];
  private nextReplica = 0;
  private probe: Promise<Readiness> = Promise.resolve('away');
  private nextProbeAt = -Infinity;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    const { master, slaves } = dataSource.driver as unknown as { master: Pool; slaves: Pool[] };
    const timeoutMs = config.statementTimeoutMs + ANSWER_GRACE_MS;
    this.primary = new Connections(master, timeoutMs);
    this.replicas = slaves.map((pool) => new Connections(pool, timeoutMs));
  }

  onModuleDestroy(): void {
    [this.primary, ...this.replicas].forEach((connections) => connections.close());
  }

  /** Runs a statement that changes nothing; on a replica if there are any, which may be behind. */
  async read<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const replica = this.replicas[this.nextReplica];
    if (replica !== undefined) {
      this.nextReplica = (this.nextReplica + 1) % this.replicas.length;
      try {
        return await replica.run<Row>(statement, values);
      } catch (error) {
        // A replica that is away must not be felt; the primary answers instead.
        if (!isConnectionFailure(error)) throw error;
      }
    }
    return this.write<Row>(statement, values);
  }

  /** Runs a statement on the primary. What it changed is committed when the promise is fulfilled. */
  async write<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    try {
      return await this.primary.run<Row>(statement, values);
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  /**
   * Runs work in one transaction on the primary: committed when its promise is fulfilled, rolled back when it throws.
   * Inside, use the given transaction alone: the embedded engine has one connection, and would wait for itself.
   */
  async transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> {
    const queryRunner = this.dataSource.createQueryRunner('master');
    try {
      const client = (await queryRunner.connect()) as ClientBase;
      await queryRunner.startTransaction();
      try {
        const result = await work({
          run: (statement, values) => client.query(new PreparedQuery<never>(statement, values)).rows,
          manager: queryRunner.manager,
        });
        await queryRunner.commitTransaction();
        return result;
      } catch (error) {
        // What went wrong first is what the caller must hear.
        await queryRunner.rollbackTransaction().catch(() => undefined);
        throw error;
      }
    } catch (error) {
      throw asUnavailable(error);
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
    const answer = this.primary.run<[name: string]>(APPLIED_MIGRATIONS, []).then(
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
