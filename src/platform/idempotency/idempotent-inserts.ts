import { type BatchLimits, Batches } from '../database/sharing/batches.js';
import type { Database, Statement } from '../database/database.js';
import { fingerprintOf } from './fingerprint.js';
import type { IdempotencyKey } from './idempotency-key.js';
import { type IdempotencyKeyRepository, nameOf, type StoredResult, unsettled } from './idempotency-key.repository.js';

/** Up to 100 requests share a statement, two statements run at a time, and up to 10 000 requests wait. */
const LIMITS: Omit<BatchLimits, 'waitMs'> = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

const NONE: ReadonlyMap<string, StoredResult> = new Map();

interface KeyedRow {
  readonly key: IdempotencyKey;
  /** Identifies the key among those of all clients. */
  readonly name: string;
  readonly fingerprint: Buffer;
  readonly values: readonly unknown[];
}

/** The outcome of a request: the id of its own row, or the stored result of its key, which may be unreadable. */
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
    private readonly repeat: (key: IdempotencyKey, fingerprint: Buffer, stored: StoredResult) => string,
  ) {
    this.batches = new Batches((rows) => this.insertAll(rows), { ...LIMITS, waitMs: database.acquireTimeoutMs });
  }

  /**
   * Inserts a row unless an earlier request with this key has done so, and returns the id of the row. It is committed when
   * the promise resolves.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED when the earlier request was different; UNAVAILABLE, after which the client must
   *   retry to learn the outcome
   */
  async insert(key: IdempotencyKey, input: Input): Promise<bigint> {
    const fingerprint = fingerprintOf(key.operation, input);
    const name = nameOf(key.clientId, key.value);
    const outcome = await this.batches.run({ key, name, fingerprint, values: this.valuesOf(input) });
    if ('insertedId' in outcome) {
      return BigInt(outcome.insertedId);
    }
    if (outcome.earlier === undefined) {
      throw unsettled();
    }
    return BigInt(this.repeat(key, fingerprint, outcome.earlier));
  }

  private async insertAll(rows: readonly KeyedRow[]): Promise<Outcome[]> {
    // Only the first request of each key is inserted, because a statement cannot store a key twice.
    const firsts = new Map<string, KeyedRow>();
    for (const row of rows) if (!firsts.has(row.name)) firsts.set(row.name, row);
    const ids = await this.insertFirsts([...firsts.values()]);
    const insertedIds = rows.map((row) => (firsts.get(row.name) === row ? ids.get(row.name) : undefined));
    // The rest are repetitions of a key, in this statement or before. They are looked up by a separate statement, because
    // only that one sees keys for whose transactions the insert may have waited.
    const rest = rows.filter((_, index) => insertedIds[index] === undefined);
    const earlier = rest.length === 0 ? NONE : await this.findEarlier(rest, ids.size > 0);
    return rows.map(({ name }, index) => {
      const insertedId = insertedIds[index];
      return insertedId === undefined ? { earlier: earlier.get(name) } : { insertedId };
    });
  }

  /**
   * Looks up keys that were stored before. If the look-up fails but the insert has committed rows, the requests of these
   * rows still succeed, and only the others fail.
   */
  private async findEarlier(
    rows: readonly KeyedRow[],
    isInserted: boolean,
  ): Promise<ReadonlyMap<string, StoredResult>> {
    try {
      return await this.keys.find(rows.map(({ key }) => key));
    } catch (error) {
      if (!isInserted) throw error;
      return NONE;
    }
  }

  /** Inserts the rows whose keys are new. Returns the ids of their rows, by the name of the key. */
  private async insertFirsts(rows: readonly KeyedRow[]): Promise<Map<string, string>> {
    const columns = (rows[0] as KeyedRow).values.map((_, column) => rows.map(({ values }) => values[column]));
    const inserted = await this.database.write<[clientId: string, key: string, id: string]>(this.statement, [
      rows.map(({ key }) => key.clientId),
      rows.map(({ key }) => key.value),
      rows.map(({ fingerprint }) => fingerprint),
      ...columns,
    ]);
    return new Map(inserted.map(([clientId, key, id]) => [nameOf(clientId, key), id]));
  }
}
