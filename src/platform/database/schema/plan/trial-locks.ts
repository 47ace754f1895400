import type { Query } from '../replace-query.js';

/** A lock that a statement takes on a table, until the end of its transaction. */
export interface PlannedLock {
  readonly table: string;
  /** The name of the mode in PostgreSQL's documentation, such as `ACCESS EXCLUSIVE`. */
  readonly mode: string;
  /** The operations of requests that the lock blocks. */
  readonly blocks: 'reads and writes' | 'writes' | 'nothing';
}

/** The locks on tables that the transaction of a trial has taken so far. */
export class TrialLocks {
  /** By id: the names of the tables that existed before the trial. */
  private tables: ReadonlyMap<string, string> = new Map();
  private readonly held = new Set<string>();

  /** Lists the tables that exist before the trial. */
  async begin(run: Query): Promise<void> {
    const rows = (await run(
      `SELECT oid::text AS id, oid::regclass::text AS name FROM pg_class
      WHERE relkind IN ('r', 'p', 'm', 'v', 'f') AND oid >= 16384 AND relnamespace <> 'pg_toast'::regnamespace`,
    )) as { id: string; name: string }[];
    this.tables = new Map(rows.map(({ id, name }) => [id, name]));
  }

  /** The locks that were taken since the last call. */
  async newLocks(run: Query): Promise<PlannedLock[]> {
    const rows = (await run(
      `SELECT DISTINCT relation::text AS id, mode FROM pg_locks
      WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted ORDER BY mode`,
    )) as { id: string; mode: string }[];
    const locks = rows.flatMap(({ id, mode }) => {
      const table = this.tables.get(id);
      const key = `${id} ${mode}`;
      if (table === undefined || this.held.has(key)) return [];
      this.held.add(key);
      return [{ table, mode: nameOf(mode), blocks: blockedBy(mode) }];
    });
    return locks.sort((a, b) => a.table.localeCompare(b.table));
  }
}

/** PostgreSQL's word for a mode of `pg_locks`: `ACCESS EXCLUSIVE` for `AccessExclusiveLock`. */
function nameOf(mode: string): string {
  return mode
    .replace(/Lock$/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toUpperCase();
}

/** PostgreSQL, table 13.2: which modes conflict with those of SELECT and of INSERT, UPDATE and DELETE. */
function blockedBy(mode: string): PlannedLock['blocks'] {
  if (mode === 'AccessExclusiveLock') return 'reads and writes';
  return ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock'].includes(mode) ? 'writes' : 'nothing';
}
