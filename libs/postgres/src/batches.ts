import { Logger } from '@nestjs/common';
import { QueryFailedError } from 'typeorm';
import { serviceUnavailable, waitedTooLong } from '#errors';
import { activeTrace } from '#runtime';
import { isCancelled } from './connections/connection-errors.js';

/** What is called `then` runs as soon as the running code has ended. */
const SOON = Promise.resolve();

/** SQLSTATE of a statement whose form the engine does not support, such as a lateral join with a limit on Citus. */
const UNSUPPORTED = '0A000';

/** Time in ms until sharing is tried again. */
const ALONE_MS = 600_000;

interface Waiting<Input, Output> {
  readonly input: Input;
  readonly key: string | undefined;
  /** When `run` was called, by `performance.now()`. */
  readonly since: number;
  /** Runs the statement of a batch that this input leads; its span is then a child of the caller's span. */
  readonly execute: (inputs: readonly Input[]) => Promise<readonly Output[]>;
  readonly resolve: (output: Output) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatchLimits {
  /** Largest number of inputs of one statement. */
  readonly size: number;
  /** Largest number of statements that run at the same time. */
  readonly concurrency: number;
  /** Largest number of inputs in the queue. One more is refused at once. */
  readonly waiting: number;
  /** Longest time in ms that an input waits in the queue. */
  readonly waitMs: number;
  /**
   * While a statement runs, the next one begins this time in ms after its start at the earliest, so that more inputs share
   * it. A full batch does not wait. Default: 0.
   */
  readonly followMs?: number;
}

/**
 * Runs inputs that wait at the same moment in one statement. Each input gets its own output or error: when PostgreSQL
 * refuses a shared statement, each of its inputs is run alone; if it does not support the statement's form, so are all others
 * for ten minutes, and the log says so once. After any other failure nothing is run again, because the
 * statement may have been executed. An input never joins a statement that has begun, so a read shows the database at or
 * after the moment of its call. Nothing is cached, so writes of other instances invalidate nothing.
 */
export class Batches<Input, Output> {
  /** Shared statements of this process whose form the engine did not support. */
  static refusals = 0;
  private waiting: Waiting<Input, Output>[] = [];
  /** The outputs of waiting inputs that have a key. */
  private outputs = new Map<string, Promise<Output>>();
  private calls = 0;
  private running = 0;
  private isScheduled = false;
  /**
   * Whether the last statement had several callers. If so, more are likely to arrive in this turn of the event loop, and the
   * next statement waits for them.
   */
  private isShared = false;
  private expiry: NodeJS.Timeout | undefined;
  private beganAt = -Infinity;
  private followUp: NodeJS.Timeout | undefined;
  /** Until then each input has a statement of its own. */
  private aloneUntil = 0;

  /** @param execute runs one atomic statement for all inputs, and returns the outputs in the order of the inputs */
  constructor(
    private readonly execute: (inputs: readonly Input[]) => Promise<readonly Output[]>,
    private readonly limits: BatchLimits,
  ) {}

  /**
   * @param key inputs that wait with the same key are executed once, and share the output
   * @returns rejects with ApiError UNAVAILABLE when the queue is full or the wait too long, or the error of `execute` for this input
   */
  run(input: Input, key?: string): Promise<Output> {
    this.calls++;
    const shared = key === undefined ? undefined : this.outputs.get(key);
    if (shared !== undefined) return shared;
    if (this.waiting.length >= this.limits.waiting) return Promise.reject(serviceUnavailable('database_busy'));
    const output = new Promise<Output>((resolve, reject) => {
      const execute = activeTrace?.bind(this.execute) ?? this.execute;
      this.waiting.push({ input, key, since: performance.now(), execute, resolve, reject });
    });
    if (key !== undefined) this.outputs.set(key, output);
    this.schedule();
    return output;
  }

  private take(count: number): Waiting<Input, Output>[] {
    const taken = this.waiting.splice(0, count);
    if (this.waiting.length > 0) {
      for (const { key } of taken) if (key !== undefined) this.outputs.delete(key);
    } else if (this.outputs.size > 0) {
      // Not emptied: each table that a map has outgrown would keep the outputs of its time from the garbage collector.
      this.outputs = new Map();
    }
    return taken;
  }

  private schedule(): void {
    if (this.isScheduled) return;
    if (this.mayBegin) {
      this.isScheduled = true;
      // After a shared statement, inputs that arrive in this turn of the event loop join.
      if (this.isShared) setImmediate(this.begin);
      // Not `queueMicrotask`, which makes an AsyncResource and enters it.
      else void SOON.then(this.begin);
      return;
    }
    this.expiry ??= setTimeout(this.expire, this.limits.waitMs).unref();
    // At the limit of concurrency, the end of a statement schedules the next one.
    if (this.running < this.limits.concurrency) this.followUp ??= setTimeout(this.follow, this.limits.followMs).unref();
  }

  private get mayBegin(): boolean {
    const { size, concurrency, followMs = 0 } = this.limits;
    if (this.running === 0) return true;
    if (this.isAlone) return this.running < size * concurrency;
    if (this.running >= concurrency) return false;
    const isFull = this.waiting.length >= size;
    return isFull || performance.now() - this.beganAt >= followMs;
  }

  private get isAlone(): boolean {
    return this.aloneUntil > 0 && performance.now() < this.aloneUntil;
  }

  /** Called when `followMs` may have passed since the start of the last statement. */
  private readonly follow = (): void => {
    this.followUp = undefined;
    if (this.waiting.length > 0) this.schedule();
  };

  /** Rejects inputs that have waited for `waitMs`, also while the running statements hang. */
  private readonly expire = (): void => {
    const latest = performance.now() - this.limits.waitMs;
    const kept = this.waiting.findIndex(({ since }) => since > latest);
    const expired = this.take(kept === -1 ? this.waiting.length : kept);
    expired.forEach(({ reject }) => reject(waitedTooLong()));
    const [oldest] = this.waiting;
    this.expiry = oldest && setTimeout(this.expire, oldest.since - latest).unref();
  };

  private readonly begin = (): void => {
    this.isScheduled = false;
    while (this.waiting.length > 0 && this.mayBegin) {
      const batch = this.take(this.isAlone ? 1 : this.limits.size);
      this.running++;
      this.beganAt = performance.now();
      this.isShared = this.calls > 1;
      this.calls = 0;
      void this.serve(batch).then(() => {
        this.running--;
        if (this.waiting.length > 0) this.schedule();
      });
    }
    // The rest of the inputs needs the timers too: perhaps nobody calls `run` again.
    if (this.waiting.length > 0) this.schedule();
  };

  private serve(batch: readonly Waiting<Input, Output>[]): Promise<void> {
    const [{ execute }] = batch as [Waiting<Input, Output>];
    return execute(batch.map(({ input }) => input)).then(
      (outputs) => {
        for (let index = 0; index < batch.length; index++) batch[index]?.resolve(outputs[index] as Output);
      },
      (error: unknown) => this.settle(batch, error),
    );
  }

  private async settle(batch: readonly Waiting<Input, Output>[], error: unknown): Promise<void> {
    // Only an error from PostgreSQL itself proves that the statement had no effect. One that took too long (57014) would mostly
    // take too long again.
    if (batch.length === 1 || !(error instanceof QueryFailedError) || isCancelled(error)) {
      batch.forEach(({ reject }) => reject(error));
      return;
    }
    const { driverError, message } = error as QueryFailedError<Error & { code?: unknown }>;
    if (driverError.code === UNSUPPORTED) {
      if (this.aloneUntil === 0)
        new Logger(Batches.name).warn(
          `The database does not support a statement that requests share; each gets its own: ${message}`,
        );
      this.aloneUntil = performance.now() + ALONE_MS;
      Batches.refusals++;
    }
    // Each input in a statement of its own, one after the other. After `waitMs` the remaining ones are rejected.
    const latest = performance.now() + this.limits.waitMs;
    for (const one of batch) {
      if (performance.now() > latest) one.reject(waitedTooLong());
      else await this.serve([one]);
    }
  }
}
