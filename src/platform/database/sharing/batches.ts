import pg from 'pg';
import { tooManyWaiting, waitedTooLong } from '../connections/queue-errors.js';

interface Waiting<Input, Output> {
  readonly input: Input;
  /** `performance.now()` when it came. */
  readonly since: number;
  readonly resolve: (output: Output) => void;
  readonly reject: (error: unknown) => void;
}

/** Limits of a `Batches`. */
export interface BatchLimits {
  /** How many requests one statement serves at the most. */
  readonly size: number;
  /** How many statements may run at a time. */
  readonly concurrency: number;
  /** How many requests may wait for a statement. */
  readonly waiting: number;
  /** Time in ms that a request may wait for the beginning of its statement. */
  readonly waitMs: number;
  /**
   * Time in ms for which requests wait for a statement that runs, to share the next one, before another may begin beside
   * it; unless they fill one. 0 when not given.
   */
  readonly followMs?: number;
}

/**
 * Runs requests that wait at the same moment in one statement. Each gets its own answer or its own error: when PostgreSQL
 * refuses a statement that serves several because of one of them, each of them is run alone. After any other failure
 * nothing is run again, for it may have been done. A request is never added to a statement that has begun, so a read shows
 * the database at or after the moment it was asked for.
 */
export class Batches<Input, Output> {
  private waiting: Waiting<Input, Output>[] = [];
  private running = 0;
  private isScheduled = false;
  /** Whether requests have come together lately: then it pays to look who else comes before a statement begins. */
  private isShared = false;
  private expiry: NodeJS.Timeout | undefined;
  /** When the latest statement began, by `performance.now()`. */
  private beganAt = -Infinity;
  private followUp: NodeJS.Timeout | undefined;

  /** @param execute one statement for all inputs, atomic; its outputs are in their order */
  constructor(
    private readonly execute: (inputs: readonly Input[]) => Promise<readonly Output[]>,
    private readonly limits: BatchLimits,
  ) {}

  /** @throws ApiError UNAVAILABLE when too many wait, or for too long, and whatever `execute` throws for this input */
  run(input: Input): Promise<Output> {
    if (this.waiting.length >= this.limits.waiting) {
      throw tooManyWaiting();
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ input, since: performance.now(), resolve, reject });
      this.schedule();
    });
  }

  private schedule(): void {
    if (!this.isScheduled && this.mayBegin) {
      this.isScheduled = true;
      if (this.isShared) {
        // Whoever has arrived in this turn of the event loop joins.
        setImmediate(this.begin);
      } else {
        queueMicrotask(this.begin);
      }
    }
    if (!this.isScheduled) {
      if (this.running < this.limits.concurrency) {
        this.followUp ??= setTimeout(this.follow, this.limits.followMs).unref();
      }
      this.expiry ??= setTimeout(this.expire, this.limits.waitMs).unref();
    }
  }

  private get mayBegin(): boolean {
    const { size, concurrency, followMs = 0 } = this.limits;
    return (
      this.running < concurrency &&
      (this.running === 0 || this.waiting.length >= size || performance.now() - this.beganAt >= followMs)
    );
  }

  private readonly follow = (): void => {
    this.followUp = undefined;
    if (this.waiting.length > 0) this.schedule();
  };

  /** Those who have waited too long hear so; statements that are slow or hang must not keep them. */
  private readonly expire = (): void => {
    const latest = performance.now() - this.limits.waitMs;
    const kept = this.waiting.findIndex(({ since }) => since > latest);
    const expired = this.waiting.splice(0, kept === -1 ? this.waiting.length : kept);
    expired.forEach(({ reject }) => reject(waitedTooLong()));
    const [oldest] = this.waiting;
    this.expiry = oldest && setTimeout(this.expire, oldest.since - latest).unref();
  };

  private readonly begin = (): void => {
    this.isScheduled = false;
    while (this.waiting.length > 0 && this.mayBegin) {
      const batch = this.waiting.length <= this.limits.size ? this.waiting : this.waiting.slice(0, this.limits.size);
      this.waiting = this.waiting.slice(batch.length);
      this.running++;
      this.beganAt = performance.now();
      this.isShared = batch.length > 1;
      void this.serve(batch).finally(() => {
        this.running--;
        if (this.waiting.length > 0) this.schedule();
      });
    }
  };

  private async serve(batch: readonly Waiting<Input, Output>[]): Promise<void> {
    try {
      const outputs = await this.execute(batch.map(({ input }) => input));
      batch.forEach(({ resolve }, index) => resolve(outputs[index] as Output));
    } catch (error) {
      // Only what PostgreSQL itself has refused was certainly not done.
      if (batch.length === 1 || !(error instanceof pg.DatabaseError)) {
        batch.forEach(({ reject }) => reject(error));
      } else {
        await this.serveAlone(batch);
      }
    }
  }

  /** Each in a statement of its own, one after the other, as long as the last of them can be waited for. */
  private async serveAlone(batch: readonly Waiting<Input, Output>[]): Promise<void> {
    const latest = performance.now() + this.limits.waitMs;
    for (const one of batch) {
      if (performance.now() > latest) {
        one.reject(waitedTooLong());
      } else {
        await this.serve([one]);
      }
    }
  }
}
