import type { PoolClient } from 'pg';
import type { ReplicationMode } from 'typeorm';
// TypeORM exports its drivers by their paths only.
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';
import { untilArrivedAnswersAreRead } from './connections/arrived-answers.js';
import { asUnavailable } from './connections/connection-errors.js';
import { tooManyWaiting } from './connections/queue-errors.js';
import type { ServicePool } from './connections/service-pool.js';
import { TAKES_ANY_TIME } from './schema/schema-lock.js';
import { destroySocket } from './statements/pg-internals.js';

/**
 * TypeORM's query runner, and so its repositories, with three differences:
 *
 * - Connection failures surface as ApiError UNAVAILABLE.
 * - A statement without an answer within `answerTimeoutMs` fails, and its connection is closed. If a change waits for a
 *   synchronous standby, its connection is kept instead (`AbandonedChanges`).
 * - While too many connections are kept, further changes are refused.
 */
export class ServiceQueryRunner extends PostgresQueryRunner {
  private isReleasedByCaller = false;

  /**
   * @param answerTimeoutMs longest time in ms to wait for an answer; undefined for the embedded engine, which runs in this
   *   process, so it is never unreachable
   * @param pool keeps connections whose change waits for a standby; undefined on a replica, where no change is made
   */
  constructor(
    driver: PostgresDriver,
    mode: ReplicationMode,
    private readonly answerTimeoutMs: number | undefined,
    private readonly pool: ServicePool | undefined,
  ) {
    super(driver, mode);
  }

  // `never` fits the result types of all of TypeORM's overloads.
  override async query(text: string, parameters?: unknown[], useStructuredResult?: boolean): Promise<never> {
    const isChange = this.mayChange(text);
    let isSent = false;
    try {
      this.assertNotBroken();
      const client = await this.connectFor(isChange);
      isSent = true;
      const answer = super.query(text, parameters, useStructuredResult) as Promise<never>;
      return await this.inTime(answer, client, isChange);
    } catch (error) {
      throw asUnavailable(error, isSent && isChange);
    }
  }

  override release(): Promise<void> {
    this.isReleasedByCaller = true;
    return super.release();
  }

  /** Whether a statement may be committed when it is answered: a COMMIT, or any but SELECT outside a transaction. */
  private mayChange(text: string): boolean {
    return text === 'COMMIT' || !(this.isTransactionActive || /^\s*SELECT\b/i.test(text));
  }

  /** TypeORM itself releases the query runner when its connection breaks, without calling `release`. */
  private assertNotBroken(): void {
    if (this.isReleased && !this.isReleasedByCaller) throw new Error('Connection terminated between two statements');
  }

  /** Longest time in ms to wait for an answer; undefined for no limit. */
  private get timeLimit(): number | undefined {
    const data: { [TAKES_ANY_TIME]?: boolean } = this.data;
    return data[TAKES_ANY_TIME] === true ? undefined : this.answerTimeoutMs;
  }

  /** @throws ApiError UNAVAILABLE when a change must not be sent, because too many others wait for a standby */
  private async connectFor(isChange: boolean): Promise<PoolClient> {
    const isCounted = isChange && this.timeLimit !== undefined;
    const abandoned = isCounted ? this.pool?.abandonedChanges : undefined;
    // Inside a transaction, `admit` must not wait: the transaction holds a connection, and the check may need one.
    if (!this.isTransactionActive) await abandoned?.admit();
    const client = (await this.connect()) as PoolClient;
    if (abandoned?.isFull === true) throw tooManyWaiting();
    return client;
  }

  /** Waits for the answer to a statement, for at most `timeLimit`. */
  private async inTime<Answer>(answer: Promise<Answer>, client: PoolClient, isChange: boolean): Promise<Answer> {
    if (this.timeLimit === undefined) return answer;
    let timer: NodeJS.Timeout | undefined;
    let isAnswered = false;
    const late = new Promise<never>((_, reject) => {
      const giveUp = async (): Promise<void> => {
        await untilArrivedAnswersAreRead();
        if (isAnswered) return;
        if (isChange && this.pool?.abandonedChanges.keep(client, answer) === true) {
          void super.release();
          reject(new Error('Query read timeout'));
        } else {
          // Makes `answer` reject.
          destroySocket(client);
        }
      };
      timer = setTimeout(() => void giveUp(), this.timeLimit);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      isAnswered = true;
      clearTimeout(timer);
    }
  }
}
