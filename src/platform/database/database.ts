import { Injectable } from '@nestjs/common';
import type { ClientBase, Pool, QueryArrayConfig } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { setTimeout as sleep } from 'node:timers/promises';
import { Config } from '../../config.js';
import { asUnavailable, isConnectionFailure } from './connection-errors.js';
import { isSchemaOfThisCode } from './schema.js';
import { tooManyWaiting } from './waiting-line.js';

/** A statement that PostgreSQL parses and plans once a connection. Its name belongs to its text for ever. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

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

/** Most statements that wait for a connection of a pool; one more is refused at once. */
const MAX_WAITING_STATEMENTS = 1_000;

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
export class Database {
  private readonly primary: Pool;
  private readonly replicas: readonly Pool[];
  private readonly queryTimeout: number | undefined;
  private nextReplica = 0;
  private probe: Promise<Readiness> = Promise.resolve('away');
  private nextProbeAt = -Infinity;

  constructor(
    private readonly dataSource: DataSource,
    config: Config,
  ) {
    const { master, slaves } = dataSource.driver as unknown as { master: Pool; slaves: Pool[] };
    this.primary = master;
    this.replicas = slaves;
    // Catches what PostgreSQL cannot tell: that its machine is gone. The embedded engine cannot go.
    this.queryTimeout = config.databaseUrl === undefined ? undefined : config.statementTimeoutMs + ANSWER_GRACE_MS;
  }

  /** Runs a statement that changes nothing; on a replica if there are any, which may be behind. */
  async read<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const replica = this.replicas[this.nextReplica];
    if (replica !== undefined) {
      this.nextReplica = (this.nextReplica + 1) % this.replicas.length;
      try {
        return await this.run<Row>(replica, statement, values);
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
      if (this.primary.waitingCount >= MAX_WAITING_STATEMENTS) {
        throw tooManyWaiting();
      }
      return await this.run<Row>(this.primary, statement, values);
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
          run: (statement, values) => this.run(client, statement, values),
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
    const answer = this.run<[name: string]>(this.primary, APPLIED_MIGRATIONS, []).then(
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

  private async run<Row extends unknown[]>(
    connection: Pool | ClientBase,
    { name, text }: Statement,
    values: unknown[],
  ): Promise<Row[]> {
    const query: QueryArrayConfig & { query_timeout?: number } = { name, text, values, rowMode: 'array' };
    if (this.queryTimeout !== undefined) query.query_timeout = this.queryTimeout;
    const { rows } = await connection.query<Row>(query);
    return rows;
  }
}
