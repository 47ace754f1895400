import { ApiError, IDEMPOTENCY_KEY_REUSED } from '#errors';
import { int64Of } from '#json';
import { Batches, type BatchLimits, type Database, type Statement } from '#postgres';
import { fingerprintOf } from './fingerprint.js';
import type { IdempotencyKey } from './idempotency-key.js';
import {
  type IdempotencyKeyRepository,
  nameOf,
  settleChange,
  type StoredResult,
  unsettled,
} from './idempotency-key.repository.js';

/** Up to 100 requests share a statement, two statements run at a time, and up to 10 000 requests wait. */
const LIMITS: Omit<BatchLimits, 'waitMs'> = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

interface KeyedRow {
  readonly key: IdempotencyKey;
  /** Identifies the key among those of all clients. */
  readonly name: string;
  readonly fingerprint: Buffer;
  readonly values: readonly unknown[];
}

/** The id of the inserted row, or the stored result of the key; undefined if that cannot be read. */
type Outcome = string | StoredResult | undefined;

/** Inserts rows, each once for its key. Requests that wait at the same moment share a statement. */
export class IdempotentInserts {
  private readonly batches: Batches<KeyedRow, Outcome>;

  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly keys: IdempotencyKeyRepository,
    private readonly statement: Statement,
  ) {
    this.batches = new Batches((rows) => this.insertAll(rows), { ...LIMITS, waitMs: database.acquireTimeoutMs });
  }

  /** Returns the id of the row of the first request with this key, committed. See `Idempotency.once`. */
  async insert(key: IdempotencyKey, input: object, values: readonly unknown[]): Promise<bigint> {
    const fingerprint = fingerprintOf(key.operation, input);
    const name = nameOf(key.clientId, key.value);
    const outcome = await this.batches.run({ key, name, fingerprint, values });
    if (outcome === undefined) throw unsettled();
    return int64Of(typeof outcome === 'string' ? outcome : repeat(key, fingerprint, outcome));
  }

  private async insertAll(rows: readonly KeyedRow[]): Promise<Outcome[]> {
    // Only the first request of each key is inserted, because a statement cannot store a key twice.
    const firsts = new Map<string, KeyedRow>();
    for (const row of rows) if (!firsts.has(row.name)) firsts.set(row.name, row);
    const insertedIds = await this.insertFirsts([...firsts.values()]);
    const idOf = (row: KeyedRow): string | undefined =>
      firsts.get(row.name) === row ? insertedIds.get(row.name) : undefined;
    // The rest are repetitions of a key, in this statement or before. They are looked up by a separate statement, because
    // only that one sees keys for whose transactions the insert may have waited.
    const rest = rows.filter((row) => idOf(row) === undefined).map(({ key }) => key);
    if (rest.length === 0) return rows.map(idOf);
    // If it fails, the requests whose rows are committed still succeed.
    const earlier = await this.keys.find(rest).catch((error: unknown) => {
      if (insertedIds.size === 0) throw error;
      return undefined;
    });
    return rows.map((row) => idOf(row) ?? earlier?.get(row.name));
  }

  /** Inserts the rows whose keys are new. Returns the ids of their rows, by the name of the key. */
  private async insertFirsts(rows: readonly KeyedRow[]): Promise<Map<string, string>> {
    const columns = (rows[0] as KeyedRow).values.map((_, column) => rows.map(({ values }) => values[column]));
    const inserted = await this.database
      .write<[clientId: string, key: string, id: string]>(this.statement, [
        rows.map(({ key }) => key.clientId),
        rows.map(({ key }) => key.value),
        rows.map(({ fingerprint }) => fingerprint),
        ...columns,
      ])
      .catch(settleChange);
    return new Map(inserted.map(([clientId, key, id]) => [nameOf(clientId, key), id]));
  }
}

/** Returns the first result and marks the response as repeated; refuses a key that was used with another request. */
export function repeat(key: IdempotencyKey, fingerprint: Buffer, stored: StoredResult): string {
  if (!fingerprint.equals(stored.fingerprint)) throw new ApiError(IDEMPOTENCY_KEY_REUSED);
  key.isReplayed = true;
  key.markReplayed();
  return stored.result;
}
