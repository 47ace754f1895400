import pg, { type ClientBase } from 'pg';
import { DataSource, type DataSourceOptions, type QueryRunner, QueryRunnerAlreadyReleasedError } from 'typeorm';
import { type EmbeddedEngine, TransactionGuard } from '#embedded-postgres';
import { isProduction } from '#settings';
import { asUncertain, asUnavailable, isConnectionFailure } from './connections/connection-errors.js';
import { ServicePool, type ServicePoolOptions } from './connections/service-pool.js';
import { unansweredStatement } from './pg-connection.internals.js';
import { EXACT } from './statements.js';
import { driverWith, type PostgresDriver, PostgresQueryRunner } from './typeorm.internals.js';

/** Options of TypeORM's data source on PostgreSQL. */
export type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

/** A data source whose connection failures surface as ApiError. It owns the embedded engine: `destroy` closes both. */
export class ServiceDataSource extends DataSource {
  declare readonly driver: PostgresDriver;
  /** What the operator should look at, as the start and readiness have found. */
  readonly warnings = new Set<string>();
  private readonly opened: { pool?: ServicePool };
  /**
   * Tells calls of modules inside a transaction from others; undefined for a server in production: on Node 20 and 22 AsyncLocalStorage
   * costs each promise some time.
   */
  readonly guard: TransactionGuard | undefined;

  /** @param engine undefined for a server */
  constructor(
    options: PostgresOptions,
    readonly engine: EmbeddedEngine | undefined,
  ) {
    const opened: { pool?: ServicePool } = {};
    class Pool extends ServicePool {
      constructor(poolOptions: ServicePoolOptions) {
        super(poolOptions);
        opened.pool = this;
      }
    }
    super({ ...options, driver: { ...pg, Pool } });
    this.opened = opened;
    this.guard = engine?.guard ?? (isProduction() ? undefined : new TransactionGuard());
    this.guard?.watch(this.manager);
  }

  /** Exists as soon as the data source is being initialised. */
  get pool(): ServicePool {
    return this.opened.pool as ServicePool;
  }

  override createQueryRunner(): QueryRunner {
    const queryRunner = new ServiceQueryRunner(this.driver, this.pool);
    return Object.assign(queryRunner, { manager: this.createEntityManager(queryRunner) });
  }

  override async destroy(): Promise<void> {
    try {
      await super.destroy();
    } finally {
      await this.engine?.close();
    }
  }
}

/** TypeORM's query runner, and so its repositories. Connection failures surface as ApiError UNAVAILABLE. */
class ServiceQueryRunner extends PostgresQueryRunner {
  private isReleasedByCaller = false;
  private client: ClientBase | undefined;
  private failure: Error | undefined;

  constructor(
    driver: PostgresDriver,
    private readonly pool: ServicePool,
  ) {
    super(driver, 'master');
    this.driver = driverWith(driver, async () => {
      const client = await this.pool.connect();
      // With an error, the pool closes the connection: PostgreSQL may be about to close it.
      const release = (error?: Error): void => client.release(error ?? this.failure);
      if (!this.isReleasedByCaller) return [(this.client = client), release];
      // Released during the wait for the connection, when there was none to return.
      release();
      throw new QueryRunnerAlreadyReleasedError();
    });
  }

  // `never` fits the result types of all of TypeORM's overloads.
  override async query(text: string, parameters?: unknown[], useStructuredResult?: boolean): Promise<never> {
    const isChange = this.mayChange(text, useStructuredResult);
    let isSent = false;
    try {
      // TypeORM itself releases the query runner when its connection breaks, without calling `release`.
      if (this.isReleased && !this.isReleasedByCaller) throw new Error('Connection terminated between two statements');
      if (!this.isReleased) await this.connect();
      if (isChange) this.pool.admitChange();
      isSent = true;
      return (await super.query(text, parameters, useStructuredResult)) as never;
    } catch (error) {
      if (isSent && isConnectionFailure(error)) this.failure = error;
      const cause = this.pool.isDistributed && isSent && isChange ? asUncertain(error) : error;
      throw asUnavailable(cause, isSent && isChange);
    }
  }

  override release(): Promise<void> {
    this.isReleasedByCaller = true;
    const { client } = this;
    if (client !== undefined && unansweredStatement(client) !== undefined)
      this.failure ??= new Error('Connection terminated: no response');
    return super.release();
  }

  /**
   * Whether a change may be committed when a statement has its result: a COMMIT, or any outside a transaction. Only a
   * SELECT of TypeORM itself, which asks for a structured result, reads for certain: others may call a function.
   */
  private mayChange(text: string, isStructured = false): boolean {
    const isSelect = text.startsWith('SELECT ') || text.startsWith(`${EXACT}SELECT `);
    return text === 'COMMIT' || !(this.isTransactionActive || (isStructured && isSelect));
  }
}
