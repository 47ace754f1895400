import { Injectable } from '@nestjs/common';
import { Database, type Statement, type Transaction } from '../database/database.js';
import { ApiError } from '../errors/api-error.js';
import { IDEMPOTENCY_KEY_REUSED } from '../errors/error-catalogue.js';
import { Fingerprint } from './fingerprint.js';
import type { IdempotencyKey } from './idempotency-key.js';
import { IdempotencyKeyRepository, nameOf, type StoredResult, unsettled } from './idempotency-key.repository.js';
import { IdempotentInserts } from './idempotent-inserts.js';
import { keepAnswer, type Kept, readAnswer } from './kept-answer.js';

/**
 * `@Idempotent()` reads the key of a request; here it takes effect. Runs what a request asks for once, however often it is
 * sent with the same key: at once, on several instances, or after a crash. The key is committed together with what the
 * request changes, and kept for 24 h; nothing is kept of a request that fails.
 */
@Injectable()
export class Idempotency {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly keys: IdempotencyKeyRepository,
  ) {}

  /**
   * Runs work in a transaction, keeps the JSON of the answer that it returns, and returns that answer: the same one again
   * for the same key, whatever has become of the rows since. It is what the JSON says, the first time and without a key
   * too: times are texts, and integers are bigints only beyond 2^53.
   *
   * @param input as of {@link once}
   * @param work as of {@link once}; returns the answer, whose JSON has at most MAX_KEPT_ANSWER_BYTES
   * @throws ApiError IDEMPOTENCY_KEY_REUSED, whatever work throws, and Error when the answer is too long: nothing is changed
   */
  async answer<Answer>(
    key: IdempotencyKey | undefined,
    input: object,
    work: (transaction: Transaction) => Promise<Answer>,
  ): Promise<Kept<Answer>> {
    const kept = await this.once(key, input, async (transaction) => keepAnswer(await work(transaction), key));
    return readAnswer<Answer>(kept);
  }

  /**
   * Runs work in a transaction, and returns what it returned the first time. Without a key it always runs.
   *
   * Two requests with the same key at the same moment may both run `work`; only one of them is committed. So `work` must
   * change the database alone, by way of the transaction it is given.
   *
   * @param input all that the request means beside its operation; another one with the same key is refused. Pass the body as
   *   the instance of its class, not a copy: members with their class's default do not count
   * @param work returns what is needed beside the input to answer again, such as the id of what it has created
   * @throws ApiError IDEMPOTENCY_KEY_REUSED, and whatever work throws
   */
  async once(
    key: IdempotencyKey | undefined,
    input: object,
    work: (transaction: Transaction) => Promise<string>,
  ): Promise<string> {
    if (key === undefined) {
      return this.database.transaction(work);
    }
    const fingerprint = new Fingerprint(key, input);
    const earlier = await this.find(key);
    if (earlier) {
      return repeat(key, fingerprint, earlier);
    }
    try {
      return await this.database.transaction(async (transaction) => {
        const result = await work(transaction);
        // Last, so that the key is locked for a moment only: a batch of other requests may wait for it.
        if (!(await this.keys.store(transaction, key, { fingerprint: fingerprint.current, result }))) throw unsettled();
        return result;
      });
    } catch (error) {
      // What the other one has committed may be the very reason why this one failed.
      const other = await this.find(key).catch(() => undefined);
      if (other) return repeat(key, fingerprint, other);
      throw error;
    }
  }

  /**
   * Inserts of single rows, for operations with much traffic: key and row take one statement, which serves all requests
   * that wait for it. The fast path `shared-statements` uses it.
   *
   * @param statement made by `insertOnceStatement`
   * @param valuesOf the columns of a row, in the order of the statement
   */
  inserts<Input extends object>(
    statement: Statement,
    valuesOf: (input: Input) => readonly unknown[],
  ): IdempotentInserts<Input> {
    return new IdempotentInserts(this.database, this.keys, statement, valuesOf, repeat);
  }

  private async find(key: IdempotencyKey): Promise<StoredResult | undefined> {
    return (await this.keys.find([key])).get(nameOf(key.clientId, key.value));
  }
}

/** The first result again, said to be so; or the refusal of another request. */
function repeat(key: IdempotencyKey, fingerprint: Fingerprint, stored: StoredResult): string {
  if (!fingerprint.matches(stored.fingerprint)) {
    throw new ApiError(IDEMPOTENCY_KEY_REUSED);
  }
  key.markReplayed();
  return stored.result;
}
