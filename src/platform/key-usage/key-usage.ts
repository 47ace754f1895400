import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../clock.js';
import { KeyUsageRepository, type UsageRecord } from './key-usage.repository.js';

/** Time in ms between two writes. A crash loses the calls of this time, and the counts that were still waiting. */
const WRITE_INTERVAL_MS = 5_000;

/**
 * Largest number of counters of one write, so that it stays short even with many keys. The counters that have waited longest
 * come first: with 10,000 in use, each is written every 50 s.
 */
const MAX_COUNTERS_PER_WRITE = 1_000;

/** Number of intervals within which every counter is written: 12 intervals are a minute. */
const MAX_INTERVALS_OF_ALL = 12;

/**
 * Largest number of counters (one per key, operation and day) in one process: 10,000 keys in use, each with five
 * operations. They take 15 MB. Calls beyond them are not counted.
 */
const MAX_COUNTERS = 50_000;

/** Longest stored `User-Agent` in characters; a longer one is cut. */
const MAX_USER_AGENT_LENGTH = 200;

const DAY_MS = 86_400_000;

/** Calls that are not yet written. */
interface Counter {
  readonly keyId: bigint;
  readonly operation: string;
  /** Days since 1970-01-01, UTC. */
  readonly day: number;
  calls: number;
  lastCallAt: number;
  userAgent: string | undefined;
}

/**
 * Counts every call with a valid key, whatever its answer. Counts are kept in memory. Every 5 s up to 1,000 counters are
 * written, or more if that is needed to write each within a minute; at shutdown, all of them. If a write fails, its counts
 * are kept for the next one.
 */
@Injectable()
export class KeyUsage implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsage.name);
  /** The counters that calls add to, by key and operation. */
  private readonly counters = new Map<bigint, Map<string, Counter>>();
  /** All counters, also those of earlier days, in the order in which they are written. */
  private readonly queue = new Set<Counter>();
  private uncounted = 0;
  /** Writes that have failed since the start. */
  failedWrites = 0;
  /** Calls that were not counted since the start. */
  uncountedCalls = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<boolean> | undefined;

  constructor(
    private readonly repository: KeyUsageRepository,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      void this.writeTimes(Math.ceil(this.writesOfAll / MAX_INTERVALS_OF_ALL));
    }, WRITE_INTERVAL_MS).unref();
  }

  /** Runs after the last answer, while the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  /** Number of counters that wait to be written. */
  get waiting(): number {
    return this.queue.size;
  }

  count(keyId: bigint, operation: string, userAgent: string | undefined, now = this.clock.now()): void {
    let counter = this.counters.get(keyId)?.get(operation);
    if (counter === undefined || counter.day !== Math.floor(now / DAY_MS)) {
      if (this.queue.size >= MAX_COUNTERS) {
        this.uncounted++;
        this.uncountedCalls++;
        return;
      }
      counter = this.createCounter(keyId, operation, Math.floor(now / DAY_MS));
    }
    counter.calls++;
    counter.lastCallAt = now;
    counter.userAgent = userAgent;
  }

  /** Writes everything that was counted before the call. After an error the counts wait for the next write. */
  async write(): Promise<void> {
    await this.writing;
    await this.writeTimes(this.writesOfAll);
  }

  /** Number of writes that all counters need. */
  private get writesOfAll(): number {
    return Math.ceil(this.queue.size / MAX_COUNTERS_PER_WRITE);
  }

  /** Writes this many times, or until a write fails. */
  private async writeTimes(times: number): Promise<void> {
    for (let left = times; left > 0; left--) {
      if (!(await this.writeNext())) return;
    }
  }

  private createCounter(keyId: bigint, operation: string, day: number): Counter {
    let ofKey = this.counters.get(keyId);
    if (ofKey === undefined) {
      ofKey = new Map<string, Counter>();
      this.counters.set(keyId, ofKey);
    }
    const counter = { keyId, operation, day, calls: 0, lastCallAt: 0, userAgent: undefined };
    ofKey.set(operation, counter);
    this.queue.add(counter);
    return counter;
  }

  /** Writes the first counters of the queue, one write at a time. False after an error, which is logged. */
  private writeNext(): Promise<boolean> {
    return (this.writing ??= this.writeOnce().finally(() => (this.writing = undefined)));
  }

  private async writeOnce(): Promise<boolean> {
    if (this.uncounted > 0) {
      this.log.warn(
        `${this.uncounted} calls were not counted: over ${MAX_COUNTERS} pairs of key and operation at once.`,
      );
      this.uncounted = 0;
    }
    const first = [...this.queue].slice(0, MAX_COUNTERS_PER_WRITE);
    const written = first.map((counter) => ({ counter, ...toRecord(counter) }));
    try {
      if (written.length > 0) await this.repository.add(written);
    } catch (error) {
      this.failedWrites++;
      this.log.warn(`The usage of API keys could not be written and waits: ${(error as Error).message}`);
      return false;
    }
    for (const { counter, calls } of written) {
      counter.calls -= calls;
      this.queue.delete(counter);
      if (counter.calls > 0) {
        this.queue.add(counter);
      } else {
        this.removeCounter(counter);
      }
    }
    return true;
  }

  private removeCounter(counter: Counter): void {
    const ofKey = this.counters.get(counter.keyId);
    if (ofKey?.get(counter.operation) !== counter) return;
    ofKey.delete(counter.operation);
    if (ofKey.size === 0) this.counters.delete(counter.keyId);
  }
}

function toRecord({ keyId, operation, day, calls, lastCallAt, userAgent }: Counter): UsageRecord {
  return {
    keyId,
    operation,
    day: new Date(day * DAY_MS).toISOString().slice(0, 10),
    calls,
    lastCallAt: new Date(lastCallAt),
    userAgent: userAgent?.slice(0, MAX_USER_AGENT_LENGTH) ?? null,
  };
}
