import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import type { ServicePool } from '../connections/service-pool.js';
import type { Statement } from '../statements/statement.js';
import type { StatementRunner } from '../connections/statement-runner.js';
import { Batches } from '../sharing/batches.js';

/** A position in the primary's write-ahead log: how much was flushed at one moment. */
export interface Position {
  /** The address behind the last flushed byte (`pg_lsn`). Every acknowledged commit lies before it. */
  readonly lsn: string;
  /** The database and the timeline to which the address belongs; a failover begins a new timeline. */
  readonly origin: string;
}

/** Longest time in ms that a query for the position waits for the previous one. */
const TURN_MS = 1_000;

// The name of a log file begins with the timeline, as eight hexadecimal digits.
const POSITION: Statement = {
  name: 'read_index_position',
  text: `SELECT lsn::text, substr(pg_walfile_name(lsn), 1, 8) FROM pg_current_wal_flush_lsn() AS lsn`,
};

const DATABASE: Statement = {
  name: '',
  text: `SELECT system_identifier || '/' || current_database(), current_setting('synchronous_commit')
    FROM pg_control_system()`,
};

/**
 * The read index: the position of the primary that a replica must have replayed, so that a read there shows everything that
 * was committed before the read arrived. All reads that wait at the same moment share one query. One query is in flight at
 * a time.
 */
export class ReadIndex {
  private readonly log = new Logger(ReadIndex.name);
  private readonly queries = new Batches<void, Position>(async () => [await this.ask()], {
    size: 1,
    concurrency: 1,
    waiting: 1,
    waitMs: TURN_MS,
  });
  /** The database that each connection to the primary leads to. */
  private readonly databases = new WeakMap<ClientBase, string>();
  private hasWarned = false;

  /** @param pool a pool of one connection to the primary */
  constructor(
    private readonly pool: ServicePool,
    private readonly statements: StatementRunner,
  ) {}

  /**
   * The position at a moment after this call.
   *
   * @throws Error when the primary does not answer, or acknowledges commits before they are in the log
   *   (`synchronous_commit=off`)
   */
  position(): Promise<Position> {
    return this.queries.run(undefined, 'position');
  }

  private async ask(): Promise<Position> {
    const client = await this.pool.connect();
    let failure: Error | undefined;
    try {
      const database = this.databases.get(client) ?? (await this.checkNew(client));
      const [row] = await this.statements.execute<[lsn: string, timeline: string]>(client, POSITION, []);
      const [lsn, timeline] = row as [string, string];
      return { lsn, origin: originOf(database, timeline) };
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
    }
  }

  /** Finds out the database of a new connection, and checks `synchronous_commit`. */
  private async checkNew(client: ClientBase): Promise<string> {
    const [row] = await this.statements.execute<[database: string, commit: string]>(client, DATABASE, []);
    const [database, synchronousCommit] = row as [string, string];
    if (synchronousCommit === 'off') {
      if (!this.hasWarned) {
        this.hasWarned = true;
        this.log.warn('Replicas are not used: they need synchronous_commit=on in PostgreSQL.');
      }
      throw new Error('synchronous_commit is off on the primary');
    }
    this.databases.set(client, database);
    return database;
  }
}

/** @param timeline eight hexadecimal digits in upper case */
export function originOf(database: string, timeline: string): string {
  return `${database}/${timeline}`;
}
