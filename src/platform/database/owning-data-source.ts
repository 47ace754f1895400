import type { PoolClient } from 'pg';
import { DataSource, type DataSourceOptions, type Driver, type QueryRunner, type ReplicationMode } from 'typeorm';
import { asUnavailable } from './connections/connection-errors.js';
import { destroySocket } from './statements/pg-internals.js';
import type { EmbeddedEngine } from './embedded/embedded-engine.js';
import { TAKES_ANY_TIME } from './schema/schema-lock.js';

/**
 * A data source that owns the embedded engine below it, if any: `destroy` closes both.
 *
 * Its query runners, and so TypeORM's repositories, differ from TypeORM's own in two ways. Connection failures surface as
 * ApiError UNAVAILABLE. A statement without an answer after `answerTimeoutMs` fails, and its connection is closed.
 */
export class OwningDataSource extends DataSource {
  /**
   * @param engine the embedded engine; undefined for a PostgreSQL server
   * @param answerTimeoutMs how long to wait for an answer, in ms; has no effect on the embedded engine
   */
  constructor(
    options: DataSourceOptions,
    private readonly engine: EmbeddedEngine | undefined,
    private readonly answerTimeoutMs: number,
  ) {
    super(options);
  }

  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    return this.guard(super.createQueryRunner(mode));
  }

  /** A query runner with a manager, on a connection of another pool. Its release returns the connection to that pool. */
  createQueryRunnerOn(client: PoolClient): QueryRunner {
    const release = (error?: Error): void => client.release(error);
    const driver = Object.create(this.driver, {
      obtainMasterConnection: { value: () => Promise.resolve([client, release]) },
    }) as Driver;
    const queryRunner = this.guard(driver.createQueryRunner('master'));
    return Object.assign(queryRunner, { manager: this.createEntityManager(queryRunner) });
  }

  private guard(queryRunner: QueryRunner): QueryRunner {
    const query = queryRunner.query.bind(queryRunner) as (text: string, ...others: unknown[]) => Promise<never>;
    const release = queryRunner.release.bind(queryRunner);
    let isReleasedByCaller = false;
    queryRunner.release = () => {
      isReleasedByCaller = true;
      return release();
    };
    queryRunner.query = async (text: string, ...others: unknown[]) => {
      let isSent = false;
      let timer: NodeJS.Timeout | undefined;
      try {
        // TypeORM releases the query runner by itself when its connection breaks.
        if (queryRunner.isReleased && !isReleasedByCaller) {
          throw new Error('Connection terminated between two statements');
        }
        const client = (await queryRunner.connect()) as PoolClient;
        // The embedded engine runs in this process, so it is never unreachable.
        if (this.engine === undefined && queryRunner.data[TAKES_ANY_TIME] !== true) {
          timer = setTimeout(() => destroySocket(client), this.answerTimeoutMs);
        }
        isSent = true;
        return await query(text, ...others);
      } catch (error) {
        const isChange = text === 'COMMIT' || !(queryRunner.isTransactionActive || /^\s*SELECT\b/i.test(text));
        throw asUnavailable(error, isSent && isChange);
      } finally {
        clearTimeout(timer);
      }
    };
    return queryRunner;
  }

  override async destroy(): Promise<void> {
    try {
      await super.destroy();
    } finally {
      await this.engine?.close();
    }
  }
}
