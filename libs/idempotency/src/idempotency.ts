import { Global, Injectable, Module } from '@nestjs/common';
import { readOwnJson, writeJson } from '#json';
import { Database, type Statement, type Transaction } from '#postgres';
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
import { IdempotentInserts, repeat } from './idempotent-inserts.js';

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
   * @param input the body and path parameters; different input under the same key gives 422. Pass the body as the instance
   *   of its class, not a copy: members with their class's default do not count
   * @param work returns the text that, with the input, repeats the response, such as the id of a created row
   * @throws ApiError IDEMPOTENCY_KEY_REUSED; any error of `work`
   */
  async once(
    key: IdempotencyKey | undefined,
    input: object,
    work: (transaction: Transaction) => Promise<string>,
  ): Promise<string> {
    if (key === undefined) return this.database.transaction(work);
    const fingerprint = fingerprintOf(key.operation, input);
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

  /** @internal @param statement a statement of `insertOnceText` */
  inserts(statement: Statement): IdempotentInserts {
    return new IdempotentInserts(this.database, this.keys, statement);
  }

  private async find(key: IdempotencyKey): Promise<StoredResult | undefined> {
    return (await this.keys.find([key])).get(nameOf(key.clientId, key.value));
  }
}

@Global()
@Module({ providers: [Idempotency, IdempotencyKeyRepository, ExpiredKeys], exports: [Idempotency] })
export class IdempotencyModule {}
