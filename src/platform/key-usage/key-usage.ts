import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../clock.js';
import { KeyUsageRepository, type UsageRecord } from './key-usage.repository.js';

/** Time in ms between two writes. A crash loses the calls of this time. */
const WRITE_INTERVAL_MS = 5_000;

/** Largest number of counters of one statement, so that it is short. */
const MAX_COUNTERS_PER_STATEMENT = 1_000;

/**
 * Largest number of counters (one per key, operation and day) in one process: 10,000 keys in use, each with five
 * operations. They take 15 MB. Calls beyond them are not counted.
 */
const MAX_COUNTERS = 50_000;

const DAY_MS = 86_400_000;

/**
 * Counts every call with a valid key, whatever its answer. Counts are kept in memory, and written every 5 s and at shutdown.
 * If a write fails, its counts are kept for the next one.
 */
@Injectable()
export class KeyUsage implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsage.name);
  /** Calls that are not yet written, by key, day and operation. */
  private counters = new Map<string, UsageRecord>();
  /** Writes that have failed since the start. */
  failedWrites = 0;
  /** Calls that were not counted since the start. */
  uncountedCalls = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> | undefined;

  constructor(
    private readonly repository: KeyUsageRepository,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      if (this.writing === undefined) void this.write();
    }, WRITE_INTERVAL_MS).unref();
  }

  /** Runs after the last answer, while the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.write();
  }

  /** Number of counters that wait to be written. */
  get waiting(): number {
    return this.counters.size;
  }

  /** Counts calls whose last one was at `now`, in ms. */
  count(keyId: bigint, operation: string, userAgent: string | undefined, now = this.clock.now(), calls = 1): void {
    const day = Math.floor(now / DAY_MS);
    const name = `${keyId} ${day} ${operation}`;
    const counter = this.counters.get(name);
    if (counter !== undefined) {
      counter.calls += calls;
      if (now < counter.lastCallAt) return;
      counter.lastCallAt = now;
      counter.userAgent = userAgent;
    } else if (this.counters.size < MAX_COUNTERS) {
      this.counters.set(name, { keyId, operation, day, calls, lastCallAt: now, userAgent });
    } else {
      this.uncountedCalls += calls;
    }
  }

  /** Writes everything that was counted before the call. After an error the counts wait for the next write. */
  async write(): Promise<void> {
    while (this.writing !== undefined) await this.writing;
    this.writing = this.writeAll().finally(() => (this.writing = undefined));
    await this.writing;
  }

  private async writeAll(): Promise<void> {
    const records = [...this.counters.values()];
    this.counters = new Map();
    try {
      while (records.length > 0) {
        await this.repository.add(records.slice(0, MAX_COUNTERS_PER_STATEMENT));
        records.splice(0, MAX_COUNTERS_PER_STATEMENT);
      }
    } catch (error) {
      this.failedWrites++;
      this.log.warn(`The usage of API keys could not be written and waits: ${(error as Error).message}`);
      for (const { keyId, operation, userAgent, lastCallAt, calls } of records) {
        this.count(keyId, operation, userAgent, lastCallAt, calls);
      }
    }
  }
}
