import { Global, Injectable, Module } from '@nestjs/common';
import { ApiError, IDEMPOTENCY_KEY_REUSED } from '#errors';
import { int64Of, readOwnJson, writeJson } from '#json';
import { Batches, Database, type Statement, type Transaction } from '#postgres';
import { fingerprintOf } from './fingerprint.js';
import type { IdempotencyKey } from './idempotency-key.js';
import {
  ExpiredKeys,
  IdempotencyKeyRepository,
  nameOf,
  settleChange,
  type StoredResult,
  unsettled,
} from './idempotency-key.repository.js';

/**
 * The type of a value after it was written as JSON and read again: a time is its text, and an integer is a bigint only if a
 * number cannot hold it.
 */
export type Kept<T> = T extends bigint
  ? bigint | number
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends { toJSON(): infer Written }
      ? Kept<Written>
      : T extends readonly (infer Item)[]
        ? Kept<Item>[]
        : { [Name in keyof T]: Kept<T[Name]> };

/** Up to 100 requests share a statement, two statements run at a time, and up to 10 000 requests wait. */
const LIMITS = { size: 100, concurrency: 2, waiting: 10_000, followMs: 20 };

interface KeyedRow {
  readonly key: IdempotencyKey;
  /** Identifies the key among those of all clients. */
  readonly name: string;
  /** Client, key and fingerprint, then those of the columns. */
  readonly values: readonly unknown[];
}

/** The id of the inserted row, or the stored result of the key; undefined if that cannot be read. */
type Outcome = string | StoredResult | undefined;

export type InsertOnce = (key: IdempotencyKey, input: object, values: readonly unknown[]) => Promise<bigint>;

/**
 * Carries a request out once, however often it is sent with the same key: at the same time, on several instances, or after a
 * crash. `@Idempotent()` reads the key of a request. The key is committed together with the changes of the request, and kept
 * for 24 h. Nothing is kept of a request that fails.
 */
@Injectable()
export class Idempotency {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly keys: IdempotencyKeyRepository,
  ) {}

  /**
   * Runs `work` in a transaction, stores the JSON of the response that it returns, and returns that response. The same
   * key gives the same response again, even if the rows have changed since. The response is always read from the JSON,
   * also the first time and without a key: times are texts, and integers are bigints only beyond 2^53.
   *
   * @param work returns the response; see {@link once}, also for `input`
   * @throws ApiError IDEMPOTENCY_KEY_REUSED; any error of `work`
   */
  async answer<Answer>(
    key: IdempotencyKey | undefined,
    input: object,
    work: (transaction: Transaction) => Promise<Answer>,
  ): Promise<Kept<Answer>> {
    // In an array, because a response may be undefined, which has no JSON.
    const text = await this.once(key, input, async (transaction) => writeJson([await work(transaction)]));
    const [answer] = readOwnJson(text) as [Kept<Answer>];
    return answer;
  }

  /**
   * Runs `work` in a transaction and returns its result. For a key that was used before, returns the first result and does
   * not run `work`. Without a key, `work` always runs.
   *
   * Two concurrent requests with the same key may both run `work`; only one of them is committed. So `work` must have no
   * effects but changes of the database, in the given transaction.
   *
   * @param input the body; another one under the same key gives 422, and so do other path parameters. Pass the body as the
   *   instance of its class, not a copy: members with their class's default do not count
   * @param work returns the text that, with the input, repeats the response, such as the id of a created row
   * @throws ApiError IDEMPOTENCY_KEY_REUSED; any error of `work`
   */
  async once(
    key: IdempotencyKey | undefined,
    input: object,
    work: (transaction: Transaction) => Promise<string>,
  ): Promise<string> {
    if (key === undefined) return this.database.transaction(work);
    const fingerprint = fingerprintOf(key, input);
    const earlier = await this.find(key);
    if (earlier) return repeat(key, fingerprint, earlier);
    try {
      return await this.database.transaction(async (transaction) => {
        const result = await work(transaction);
        // Last, so that the key is locked only briefly: a batch of other requests may wait for it.
        if (!(await this.keys.store(transaction, key, { fingerprint, result }))) throw unsettled();
        return result;
      });
    } catch (error) {
      // This request may have failed because one with the same key was committed meanwhile.
      const other = await this.find(key).catch(() => undefined);
      if (other) return repeat(key, fingerprint, other);
      return settleChange(error);
    }
  }

  /**
   * @internal Inserts rows by a statement of `insertOnceText`, each once for its key. Requests that wait at the same moment share
   * it. Returns the id of the row of the first request with a key, committed.
   */
  inserts(statement: Statement): InsertOnce {
    const limits = { ...LIMITS, waitMs: this.database.acquireTimeoutMs };
    const batches = new Batches((rows: readonly KeyedRow[]) => this.insertAll(statement, rows), limits);
    return async (key, input, values) => {
      const fingerprint = fingerprintOf(key, input);
      const name = nameOf(key.clientId, key.value);
      const outcome = await batches.run({ key, name, values: [key.clientId, key.value, fingerprint, ...values] });
      if (outcome === undefined) throw unsettled();
      return int64Of(typeof outcome === 'string' ? outcome : repeat(key, fingerprint, outcome));
    };
  }

  private async find(key: IdempotencyKey): Promise<StoredResult | undefined> {
    return (await this.keys.find([key])).get(nameOf(key.clientId, key.value));
  }

  private async insertAll(statement: Statement, rows: readonly KeyedRow[]): Promise<Outcome[]> {
    // Only the first request of each key is inserted, because a statement cannot store a key twice.
    const firsts = new Map<string, KeyedRow>();
    for (const row of rows) if (!firsts.has(row.name)) firsts.set(row.name, row);
    const sent = [...firsts.values()].map(({ values }) => values);
    const columns = (rows[0] as KeyedRow).values.map((_, column) => sent.map((values) => values[column]));
    const inserted = await this.database
      .execute<[clientId: string, key: string, id: string]>(statement, columns, true)
      .catch(settleChange);
    const insertedIds = new Map(inserted.map(([clientId, key, id]) => [nameOf(clientId, key), id]));
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
}

/** Returns the first result and marks the response as repeated; refuses a key that was used with another request. */
function repeat(key: IdempotencyKey, fingerprint: Buffer, stored: StoredResult): string {
  if (!fingerprint.equals(stored.fingerprint)) throw new ApiError(IDEMPOTENCY_KEY_REUSED);
  key.isReplayed = true;
  key.markReplayed();
  return stored.result;
}

@Global()
@Module({ providers: [Idempotency, IdempotencyKeyRepository, ExpiredKeys], exports: [Idempotency] })
export class IdempotencyModule {}
