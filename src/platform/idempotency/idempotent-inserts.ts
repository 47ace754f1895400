import { type BatchLimits, Batches } from '../database/sharing/batches.js';
import type { Database, Statement } from '../database/database.js';
import { Fingerprint } from './fingerprint.js';
import type { IdempotencyKey } from './idempotency-key.js';
import { type IdempotencyKeyRepository, nameOf, type StoredResult, unsettled } from './idempotency-key.repository.js';

/** Requests that one statement serves, statements at a time, and requests that may wait for one. */
const LIMITS: Omit<BatchLimits, 'waitMs'> = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

interface KeyedRow {
  readonly key: IdempotencyKey;
  readonly fingerprint: Fingerprint;
  readonly values: readonly unknown[];
}

/** What became of a request: its own row, what is stored with its key, or neither. */
type Outcome = { readonly insertedId: string } | { readonly earlier: StoredResult | undefined };

/** Inserts rows, each once for its key. Requests that wait at the same moment share a statement. */
export class IdempotentInserts<Input extends object> {
  private readonly batches: Batches<KeyedRow, Outcome>;

  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly keys: IdempotencyKeyRepository,
    private readonly statement: Statement,
    private readonly valuesOf: (input: Input) => readonly unknown[],
    private readonly repeat: (key: IdempotencyKey, fingerprint: Fingerprint, stored: StoredResult) => string,
  ) {
    this.batches = new Batches((rows) => this.insertAll(rows), { ...LIMITS, waitMs: database.acquireTimeoutMs });
  }

  /**
   * The id of the row that the first request with this key has inserted, or this one does; when the promise is fulfilled,
   * it is committed.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED when the first request was another one, or UNAVAILABLE: sent again, it settles
   */
  async insert(key: IdempotencyKey, input: Input): Promise<bigint> {
    const fingerprint = new Fingerprint(key, input);
    const outcome = await this.batches.run({ key, fingerprint, values: this.valuesOf(input) });
    if ('insertedId' in outcome) {
      return BigInt(outcome.insertedId);
    }
    if (outcome.earlier === undefined) {
      throw unsettled();
    }
    return BigInt(this.repeat(key, fingerprint, outcome.earlier));
  }

  private async insertAll(rows: readonly KeyedRow[]): Promise<Outcome[]> {
    // Of those that share a key the first; a statement cannot store a key twice.
    const firsts = new Map<string, KeyedRow>();
    for (const row of rows) {
      const name = nameOf(row.key.clientId, row.key.value);
      if (!firsts.has(name)) firsts.set(name, row);
    }
    const inserted = await this.insertFirsts([...firsts.values()]);
    const insertedIdOf = (row: KeyedRow): string | undefined => {
      const name = nameOf(row.key.clientId, row.key.value);
      return firsts.get(name) === row ? inserted.get(name) : undefined;
    };
    const others = rows.filter((row) => insertedIdOf(row) === undefined);
    // A statement of its own, which sees what the one before may have waited for.
    const earlier =
      others.length === 0 ? new Map<string, StoredResult>() : await this.findEarlier(others, inserted.size > 0);
    return rows.map((row) => {
      const insertedId = insertedIdOf(row);
      return insertedId === undefined
        ? { earlier: earlier.get(nameOf(row.key.clientId, row.key.value)) }
        : { insertedId };
    });
  }

  /**
   * Looks up the keys that were stored before. The rows inserted by the same statement are committed already. If the look-up
   * fails, the requests of those rows still succeed, and only the others fail.
   */
  private async findEarlier(rows: readonly KeyedRow[], isInserted: boolean): Promise<Map<string, StoredResult>> {
    try {
      return await this.keys.find(rows.map(({ key }) => key));
    } catch (error) {
      if (!isInserted) throw error;
      return new Map();
    }
  }

  private async insertFirsts(rows: readonly KeyedRow[]): Promise<Map<string, string>> {
    const columns = (rows[0] as KeyedRow).values.map((_, column) => rows.map(({ values }) => values[column]));
    const inserted = await this.database.write<[clientId: string, key: string, id: string]>(this.statement, [
      rows.map(({ key }) => key.clientId),
      rows.map(({ key }) => key.value),
      rows.map(({ fingerprint }) => fingerprint.current),
      ...columns,
    ]);
    return new Map(inserted.map(([clientId, key, id]) => [nameOf(clientId, key), id]));
  }
}
