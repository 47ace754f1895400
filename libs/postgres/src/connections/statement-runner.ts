import type { PoolClient } from 'pg';
import type { Execute, Statement } from '../statements.js';
import { asUnavailable, isConnectionFailure, mayBeStale } from './connection-errors.js';
import type { ServicePool } from './service-pool.js';

/** SQLSTATE of a statement that PostgreSQL has undone because of a concurrent one. */
const NOT_SERIALIZABLE = '40001';

/** Largest number of attempts of such a statement, which has had no effect. */
const MAX_ATTEMPTS = 20;

export class StatementRunner {
  constructor(
    private readonly pool: ServicePool,
    readonly execute: Execute,
  ) {}

  /**
   * Repeats a statement that PostgreSQL undoes for a concurrent one, as it does where `default_transaction_isolation` of the role is not
   * `read committed`.
   *
   * @throws ApiError UNAVAILABLE, which says whether the change may have been made; any error of PostgreSQL
   */
  async run<Row extends unknown[]>(statement: Statement, values: readonly unknown[], isChange = false): Promise<Row[]> {
    for (let attempt = 1; ; attempt++) {
      let isSent = false;
      try {
        const client = await this.pool.connect();
        isSent = true;
        return await this.runOn<Row>(client, statement, values, isChange);
      } catch (error) {
        if ((error as { code?: unknown }).code === NOT_SERIALIZABLE && attempt < MAX_ATTEMPTS) continue;
        throw asUnavailable(error, isSent && isChange);
      }
    }
  }

  /** Runs a statement on a connection that the caller has taken from the pool, and releases it. Throws errors of pg. */
  async runOn<Row extends unknown[]>(
    client: PoolClient,
    statement: Statement,
    values: readonly unknown[],
    isChange = false,
  ): Promise<Row[]> {
    let failure: Error | undefined;
    try {
      if (isChange) this.pool.admitChange();
      return await this.execute<Row>(client, statement, values);
    } catch (error) {
      if (isConnectionFailure(error)) failure = error;
      if (statement.name === '' || !mayBeStale(error)) throw error;
      // The statement had no effect (DEALLOCATE, or a changed table). Without a name it is parsed anew. If it works now,
      // its preparation was stale. Releasing with `failure` closes the connection: other preparations may be stale, too.
      const rows = await this.execute<Row>(client, { ...statement, name: '' }, values);
      failure = error as Error;
      return rows;
    } finally {
      client.release(failure);
    }
  }
}
