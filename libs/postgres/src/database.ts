import { Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase, PoolClient } from 'pg';
import { DataSource, type EntityManager, type QueryRunner } from 'typeorm';
import { StartupError } from '#runtime';
import { Config } from '#settings';
import { ANSWER_GRACE_MS, directly, type PostgresConfig } from './connection-settings.js';
import { Batches, type BatchLimits } from './batches.js';
import {
  asUncertain,
  asUnavailable,
  isConnectionFailure,
  isUndone,
  mayBeStale,
} from './connections/connection-errors.js';
import { serviceUnavailable } from '#errors';
import { breakOnSilence } from './connections/breaker.js';
import type { ServicePool } from './connections/service-pool.js';
import { executePreparedQuery } from './prepared-query.internals.js';
import { transactionStatusOf } from './pg-connection.internals.js';
import { type Execute, executeQuery, type Statement } from './statements.js';
import type { ServiceDataSource } from './service-data-source.js';
import { hiddenRows } from './schema/findings.js';
import { migrationStatus, schemaFault } from './schema/migration-history.js';

/** Longest time in ms of a query for readiness. */
const READINESS_MS = 1_000;

const OUTSIDE =
  'This code runs inside a transaction, but its write would be no part of it, and stay if the transaction is undone. Use ' +
  'in(manager) of the SharedRepository, and run or manager of the transaction in place of Database.';

/** Largest number of attempts of a statement that PostgreSQL has undone because of a concurrent one, by SQLSTATE (see `isUndone`). */
const MAX_ATTEMPTS: Readonly<Record<string, number>> = { '40001': 20, '40P01': 3 };

const UNDONE = 'Another request was changing the same data, and nothing was changed. Try again.';

/** An open transaction. */
export interface Transaction {
  /** Runs a statement, which is parsed anew each time. Each row is an array of columns. */
  run<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]>;
  /** TypeORM's entity manager in the same transaction. */
  readonly manager: EntityManager;
}

/** Behind a pooler in transaction mode, each statement may run in another session, so none is prepared. */
const executeUnnamed: Execute = (client, { text }, values) => executeQuery(client, { name: '', text }, values);

/**
 * Runs SQL statements, without TypeORM. Each row is an array of columns; bigint columns are exact decimal strings.
 *
 * Every method that runs a statement throws ApiError UNAVAILABLE when the database is unreachable, overloaded or
 * read-only, or no connection is free in time. The original error is its `cause`; its message says whether a change may have
 * been made. Other errors of PostgreSQL are TypeORM's QueryFailedError.
 */
@Injectable()
export class Database implements OnModuleInit {
  private readonly run: Execute;
  private readonly log = new Logger(Database.name);
  /** Where code has read outside of its transaction. */
  private readonly told = new Set<string>();
  /** @internal */
  readonly pool: ServicePool;

  /** Longest time in ms that a request waits in a queue, and that a statement waits for a connection. */
  readonly acquireTimeoutMs: number;

  /** @internal */
  constructor(
    private readonly dataSource: DataSource,
    @Inject(Config) private readonly config: PostgresConfig,
  ) {
    this.acquireTimeoutMs = config.acquireTimeoutMs;
    this.pool = (dataSource as ServiceDataSource).pool;
    this.run = config.databaseDirectUrl === undefined ? executePreparedQuery : executeUnnamed;
  }

  onModuleInit(): void {
    for (const warning of this.warnings) this.log.warn(warning);
    const connectionString = directly(this.config).databaseUrl;
    // The embedded engine runs in this process, so it is never silent.
    if (connectionString === undefined) return;
    void breakOnSilence(this.pool, { connectionString, application_name: this.config.product.name });
  }

  /** Runs a read-only statement, which sees every committed change, and those of the transaction that surrounds it (`surrounding`). */
  async read<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const runner = this.surrounding;
    if (runner !== undefined) return this.runIn(runner, statement, values);
    this.checkOutside('read');
    return this.execute(statement, values);
  }

  /**
   * Runs a statement that changes data. The change is committed when the promise resolves, or with the transaction that
   * surrounds it (`surrounding`).
   *
   * @throws Error inside another transaction of the module, unless NODE_ENV is `production`
   */
  async write<Row extends unknown[]>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const runner = this.surrounding;
    if (runner !== undefined) return this.runIn(runner, statement, values);
    this.checkOutside('write');
    return this.execute(statement, values, true);
  }

  /**
   * @internal Runs a statement for requests of any transaction, and of none. Repeats one that PostgreSQL undoes for a concurrent one, as it
   * does where `default_transaction_isolation` of the role is not `read committed`, or for a deadlock with a change of the schema.
   */
  async execute<Row extends unknown[]>(statement: Statement, values: unknown[], isChange = false): Promise<Row[]> {
    for (let attempt = 1; ; attempt++) {
      let isSent = false;
      try {
        const client = await this.pool.connect();
        isSent = isChange;
        return await this.runOn<Row>(client, statement, values, isChange);
      } catch (error) {
        if (isUndone(error) && attempt < (MAX_ATTEMPTS[error.code] ?? 0)) continue;
        throw asUnavailable(this.pool.isDistributed && isSent ? asUncertain(error) : error, isSent);
      }
    }
  }

  /** Runs a statement on a connection of the pool, and releases it. */
  private async runOn<Row extends unknown[]>(
    client: PoolClient,
    statement: Statement,
    values: unknown[],
    isChange: boolean,
  ): Promise<Row[]> {
    let failure: Error | undefined;
    try {
      if (isChange) this.pool.admitChange();
      return await this.run<Row>(client, statement, values);
    } catch (error) {
      if (isConnectionFailure(error)) failure = error;
      if (statement.name === '' || !mayBeStale(error)) throw error;
      // The statement had no effect (DEALLOCATE, or a changed table). Without a name it is parsed anew. If it works now,
      // its preparation was stale. Releasing with `failure` closes the connection: other preparations may be stale, too.
      const rows = await this.run<Row>(client, { ...statement, name: '' }, values);
      failure = error as Error;
      return rows;
    } finally {
      client.release(failure);
    }
  }

  /** @internal Whether the calling code runs inside a transaction; false in production, on a server. */
  get isInside(): boolean {
    return (this.dataSource as ServiceDataSource).guard?.isInside === true;
  }

  /**
   * @internal Refuses a call of a module, or warns of it once for each place in its code, that stands inside a transaction and would be
   * no part of it.
   *
   * @param depth how many calls of the platform the module's code is away
   */
  checkOutside(kind: 'read' | 'write', depth = 2): void {
    if (!this.isInside) return;
    if (kind === 'write') throw new Error(OUTSIDE);
    const { engine } = this.dataSource as ServiceDataSource;
    engine?.guard.admit();
    const place = String(new Error().stack?.split('\n')[1 + depth]);
    if (this.told.has(place)) return;
    this.told.add(place);
    this.log.warn(
      `This code runs inside a transaction, whose own changes it does not see: use in(manager) of the SharedRepository, and run or ` +
        `manager of the transaction in place of Database.\n${place}`,
    );
  }

  /**
   * The query runner of the transaction that TypeORM's data source is in by itself. That of typeorm-transactional is, inside
   * `@Transactional()`.
   */
  private get surrounding(): QueryRunner | undefined {
    return this.dataSource.manager.queryRunner;
  }

  private async runIn<Row extends unknown[]>(
    runner: QueryRunner,
    statement: Statement,
    values: unknown[],
  ): Promise<Row[]> {
    const client = (await runner.connect()) as ClientBase;
    // Without a name, so not prepared: a stale preparation would fail the statement and undo the transaction.
    return this.run(client, { ...statement, name: '' }, values);
  }

  /**
   * @internal Batches of one statement: `one` gets the values of an input, `many` an array of each value.
   *
   * @param outputsOf the outputs in the order of the inputs
   */
  share<Input extends readonly unknown[], Row extends unknown[], Output>(
    run: 'read' | 'write',
    { one, many }: Readonly<Record<'one' | 'many', Statement>>,
    outputsOf: (rows: readonly Row[], inputs: readonly Input[]) => readonly Output[],
    limits: Omit<BatchLimits, 'waitMs'>,
  ): Batches<Input, Output> {
    const execute = (inputs: readonly Input[]): Promise<readonly Output[]> => {
      const columns = (inputs[0] as Input).map((value, column) =>
        inputs.length === 1 ? value : inputs.map((input) => input[column]),
      );
      return this.execute<Row>(inputs.length === 1 ? one : many, columns, run === 'write').then((rows) =>
        outputsOf(rows, inputs),
      );
    };
    return new Batches(execute, { ...limits, waitMs: this.acquireTimeoutMs });
  }

  /**
   * Runs `work` in one transaction. The transaction is committed when the promise of `work` resolves, and
   * rolled back when it rejects. `work` must use only the given transaction: other statements are no part of it. So writes beside
   * it are refused, unless NODE_ENV is `production`, and reads on the embedded engine, which has one connection. Inside
   * `@Transactional()` of typeorm-transactional it is a savepoint of that transaction.
   *
   * It is never repeated: one that PostgreSQL has undone for a concurrent one (SQLSTATE 40001, 40P01) is ApiError UNAVAILABLE.
   *
   * @param options `timeoutMs`: longest time in ms of each statement, for jobs and reports that need more than
   *   STATEMENT_TIMEOUT_MS; at least 1. On the embedded engine no limit applies.
   */
  async transaction<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    { timeoutMs }: { readonly timeoutMs?: number } = {},
  ): Promise<Result> {
    if (this.surrounding === undefined) this.checkOutside('write');
    try {
      return await this.dataSource.manager.transaction(async (manager) => {
        const runner = manager.queryRunner as QueryRunner;
        const client = (await runner.connect()) as ClientBase;
        if (timeoutMs !== undefined) {
          await this.run(client, SET_TIMEOUT, [timeoutMs]);
          this.pool.setAnswerTimeout(client, timeoutMs + ANSWER_GRACE_MS);
        }
        const result = await work({
          run: (statement, values) => this.runIn(runner, statement, values),
          manager,
        });
        // PostgreSQL would respond to COMMIT with a rollback, which is no error.
        if ((await transactionStatusOf(client)) === 'E')
          throw new Error('A statement of the transaction failed: nothing is kept.');
        return result;
      });
    } catch (error) {
      if (isUndone(error)) throw serviceUnavailable('database_busy', UNDONE, { cause: error });
      throw asUnavailable(error);
    }
  }

  /** @internal Whether the embedded engine has crashed, and is being opened again. */
  get isReopening(): boolean {
    return (this.dataSource as ServiceDataSource).engine?.isOpen === false;
  }

  /** @internal Warnings of the start, and of the readiness checks since. The log has their texts. */
  get warnings(): Set<string> {
    return (this.dataSource as ServiceDataSource).warnings;
  }

  /** @internal 'ready', or why the database cannot serve the requests of this version. Resolves within READINESS_MS. */
  readiness(): Promise<'ready' | 'unreachable' | Error> {
    const answer = this.check().catch((error: unknown) =>
      error instanceof StartupError ? error : ('unreachable' as const),
    );
    return Promise.race([answer, sleep(READINESS_MS, 'unreachable' as const, { ref: false })]);
  }

  private async check(): Promise<'ready' | StartupError> {
    const { fault, warnings } = await hiddenRows(this.dataSource);
    for (const warning of warnings) if (!this.warnings.has(warning)) this.log.warn(warning);
    for (const warning of warnings) this.warnings.add(warning);
    return fault ?? schemaFault(await migrationStatus(this.dataSource), this.config.product) ?? 'ready';
  }
}

const SET_TIMEOUT: Statement = { name: '', text: `SELECT set_config('statement_timeout', $1, true)` };
