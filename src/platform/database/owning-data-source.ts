import type { PoolClient } from 'pg';
import { DataSource, type DataSourceOptions, type QueryRunner, type ReplicationMode } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import type { ServicePool } from './connections/service-pool.js';
import type { EmbeddedEngine } from './embedded/embedded-engine.js';
import { ServiceQueryRunner } from './service-query-runner.js';

/** A data source that owns the embedded engine, if there is one: `destroy` closes both. */
export class OwningDataSource extends DataSource {
  declare readonly driver: PostgresDriver;

  /**
   * @param engine the embedded engine; undefined for a PostgreSQL server
   * @param answerTimeoutMs longest time in ms to wait for an answer; has no effect on the embedded engine
   */
  constructor(
    options: DataSourceOptions,
    readonly engine: EmbeddedEngine | undefined,
    private readonly answerTimeoutMs: number,
  ) {
    super(options);
  }

  override createQueryRunner(mode: ReplicationMode = 'master'): QueryRunner {
    const timeLimit = this.engine ? undefined : this.answerTimeoutMs;
    return this.withManager(new ServiceQueryRunner(this.driver, mode, timeLimit, this.driver.master as ServicePool));
  }

  /** A query runner on a connection of a replica's pool. Its release returns the connection to that pool. */
  createQueryRunnerOn(client: PoolClient): QueryRunner {
    const release = (error?: Error): void => client.release(error);
    const driver = Object.create(this.driver, {
      obtainMasterConnection: { value: () => Promise.resolve([client, release]) },
    }) as PostgresDriver;
    return this.withManager(new ServiceQueryRunner(driver, 'master', this.answerTimeoutMs, undefined));
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
