import type { PoolClient } from 'pg';
import { DataSource, type DataSourceOptions, type Driver, type QueryRunner, type ReplicationMode } from 'typeorm';
import type { AbandonedChanges } from './connections/abandoned-changes.js';
import { asUnavailable } from './connections/connection-errors.js';
import { tooManyWaiting } from './connections/queue-errors.js';
import type { ServicePool } from './connections/service-pool.js';
import { destroySocket } from './statements/pg-internals.js';
import type { EmbeddedEngine } from './embedded/embedded-engine.js';
import { TAKES_ANY_TIME } from './schema/schema-lock.js';
import type { Pooling } from './servers/pooling.js';

/**
 * A data source that owns the embedded engine, if there is one: `destroy` closes both.
 *
 * Its query runners, and so TypeORM's repositories, differ from TypeORM's own in three ways:
 *
 * - Connection failures surface as ApiError UNAVAILABLE.
 * - A statement without an answer within `answerTimeoutMs` fails, and its connection is closed. If a change waits for a
 *   synchronous standby, its connection is kept instead (`AbandonedChanges`).
 * - While too many connections are kept, further changes are refused.
 */
export class OwningDataSource extends DataSource {
  /**
   * @param engine the embedded engine; undefined for a PostgreSQL server
   * @param answerTimeoutMs longest time in ms to wait for an answer; has no effect on the embedded engine
   * @param pooling the kind of pooler between the service and the server
   */
  constructor(
    options: DataSourceOptions,
    private readonly engine: EmbeddedEngine | undefined,
    private readonly answerTimeoutMs: number,
    readonly pooling: Pooling,
  ) {
    super(options);
  }

  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    // The embedded engine runs in this process, so it is never unreachable.
    return this.guard(super.createQueryRunner(mode), () => (this.engine ? undefined : this.pool.abandonedChanges));
  }

  /** A query runner with a manager, on a connection of another pool. Its release returns the connection to that pool. */
  createQueryRunnerOn(client: PoolClient): QueryRunner {
    const release = (error?: Error): void => client.release(error);
    const driver = Object.create(this.driver, {
      obtainMasterConnection: { value: () => Promise.resolve([client, release]) },
    }) as Driver;
    const queryRunner = this.guard(driver.createQueryRunner('master'), () => undefined);
    return Object.assign(queryRunner, { manager: this.createEntityManager(queryRunner) });
  }

  private get pool(): ServicePool {
    return (this.driver as unknown as { master: ServicePool }).master;
  }

  /** @param changes returns the keeper of connections whose change waits for a standby; undefined if no change can wait */
  private guard(queryRunner: QueryRunner, changes: () => AbandonedChanges | undefined): QueryRunner {
    const query = queryRunner.query.bind(queryRunner) as (text: string, ...others: unknown[]) => Promise<never>;
    const release = queryRunner.release.bind(queryRunner);
    let isReleasedByCaller = false;
    queryRunner.release = () => {
      isReleasedByCaller = true;
      return release();
    };
    // If the answer is late, `changes` keeps the connection of a change; otherwise the connection is closed.
    const send = (client: PoolClient, isChange: boolean, text: string, others: unknown[]): Promise<never> => {
      const answer = query(text, ...others);
      return new Promise<never>((resolve, reject) => {
        const timer = setTimeout(() => {
          if (!isChange || changes()?.keep(client, answer) !== true) return destroySocket(client);
          void release();
          reject(new Error('Query read timeout'));
        }, this.answerTimeoutMs);
        answer.then(resolve, reject).finally(() => clearTimeout(timer));
      });
    };
    queryRunner.query = async (text: string, ...others: unknown[]) => {
      let isSent = false;
      const isChange = text === 'COMMIT' || !(queryRunner.isTransactionActive || /^\s*SELECT\b/i.test(text));
      try {
        // TypeORM itself releases the query runner when its connection breaks.
        if (queryRunner.isReleased && !isReleasedByCaller) {
          throw new Error('Connection terminated between two statements');
        }
        const takesAnyTime = this.engine !== undefined || queryRunner.data[TAKES_ANY_TIME] === true;
        const isCounted = isChange && !takesAnyTime;
        // Inside a transaction, `admit` must not wait: the transaction holds a connection, and the check may need one.
        if (isCounted && !queryRunner.isTransactionActive) await changes()?.admit();
        const client = (await queryRunner.connect()) as PoolClient;
        if (isCounted && changes()?.isFull) throw tooManyWaiting();
        isSent = true;
        return await (takesAnyTime ? query(text, ...others) : send(client, isChange, text, others));
      } catch (error) {
        throw asUnavailable(error, isSent && isChange);
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
