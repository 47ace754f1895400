import type { ClientBase, PoolClient } from 'pg';
import { DataSource, type DataSourceOptions, type QueryRunner, type ReplicationMode } from 'typeorm';
import type { EmbeddedEngine } from '#embedded-postgres';
import { type PostgresDriver, PostgresQueryRunner, unansweredStatement } from '#internals';
import { asUnavailable, isConnectionFailure } from './connections/connection-errors.js';
import type { ServicePool } from './connections/service-pool.js';
import { EXACT } from './statements.js';

/** A data source whose connection failures surface as ApiError. It owns the embedded engine: `destroy` closes both. */
export class ServiceDataSource extends DataSource {
  declare readonly driver: PostgresDriver;

  /** @param engine undefined for a server */
  constructor(
    options: DataSourceOptions,
    readonly engine: EmbeddedEngine | undefined,
  ) {
    super(options);
    engine?.guard.watch(this.manager);
  }

  get pool(): ServicePool {
    return this.driver.master as ServicePool;
  }

  /** @throws Error for 'slave': replicas belong to `Database`, which knows what each of them has replayed */
  override createQueryRunner(mode: ReplicationMode = 'master'): QueryRunner {
    if (mode === 'slave')
      throw new Error("For createQueryRunner('slave') write Database.readReplica(async (manager) => …).");
    return this.withManager(new ServiceQueryRunner(this.driver, 'master'));
  }

  /** TypeORM would take 'slave', and use the primary. */
  override defaultReplicationModeForReads(): ReplicationMode {
    return 'master';
  }

  /** A query runner on a connection of a replica's pool. Its release returns the connection to that pool. */
  createQueryRunnerOn(client: PoolClient): QueryRunner {
    const release = (error?: Error): void => client.release(error);
    const driver = Object.create(this.driver, {
      obtainMasterConnection: { value: () => Promise.resolve([client, release]) },
    }) as PostgresDriver;
    return this.withManager(new ServiceQueryRunner(driver, 'master'));
  }

  private withManager(queryRunner: ServiceQueryRunner): QueryRunner {
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
  private readonly pool = this.driver.master as ServicePool;
  private isReleasedByCaller = false;
  private client: ClientBase | undefined;
  private failure: Error | undefined;

  // `never` fits the result types of all of TypeORM's overloads.
  override async query(text: string, parameters?: unknown[], useStructuredResult?: boolean): Promise<never> {
    const isChange = this.mayChange(text, useStructuredResult);
    let isSent = false;
    try {
      if (!this.isReleased) {
        this.client = (await this.connect()) as ClientBase;
        if (this.isReleasedByCaller) {
          // Released during the wait for the connection, when there was none to return.
          this.isReleased = false;
          await this.release();
        }
      } else if (!this.isReleasedByCaller) {
        // TypeORM itself releases the query runner when its connection breaks, without calling `release`.
        throw new Error('Connection terminated between two statements');
      }
      if (isChange) this.pool.admitChange();
      isSent = true;
      return (await super.query(text, parameters, useStructuredResult)) as never;
    } catch (error) {
      if (isSent && isConnectionFailure(error)) this.failure = error;
      throw asUnavailable(error, isSent && isChange, this.pool.isWritable);
    }
  }

  override release(): Promise<void> {
    this.isReleasedByCaller = true;
    const { client, releaseCallback } = this;
    if (client !== undefined && unansweredStatement(client) !== undefined)
      this.failure ??= new Error('Connection terminated: no response');
    // With an error, the pool closes the connection: PostgreSQL may be about to close it.
    if (releaseCallback !== undefined) this.releaseCallback = () => releaseCallback(this.failure);
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
