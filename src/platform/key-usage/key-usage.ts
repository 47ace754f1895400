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
 * Counts every call with a valid key, whatever its answer. Counts are kept in memory, and written every 5 s and at shutdown.
 * If a write fails, its counts are kept for the next one.
 */
@Injectable()
export class KeyUsage implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsage.name);
  /** By key, day and operation. */
  private readonly counters = new Map<string, Counter>();
  private uncounted = 0;
  /** Writes that have failed since the start. */
  failedWrites = 0;
  /** Calls that were not counted since the start. */
  uncountedCalls = 0;
  private timer: NodeJS.Timeout | undefined;
  /** Settles when the last write has ended; never rejects. */
  private lastWrite: Promise<void> = Promise.resolve();
  private isWriting = false;

  constructor(
    private readonly repository: KeyUsageRepository,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      if (!this.isWriting) void this.write();
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

  count(keyId: bigint, operation: string, userAgent: string | undefined, now = this.clock.now()): void {
    const day = Math.floor(now / DAY_MS);
    const name = `${keyId} ${day} ${operation}`;
    let counter = this.counters.get(name);
    if (counter === undefined) {
      if (this.counters.size >= MAX_COUNTERS) {
        this.uncounted++;
        this.uncountedCalls++;
        return;
      }
      counter = { keyId, operation, day, calls: 0, lastCallAt: 0, userAgent: undefined };
      this.counters.set(name, counter);
    }
    counter.calls++;
    counter.lastCallAt = now;
    counter.userAgent = userAgent;
  }

  /** Writes everything that was counted before the call. After an error the counts wait for the next write. */
  write(): Promise<void> {
    return (this.lastWrite = this.lastWrite.then(() => this.writeAll()));
  }

  private async writeAll(): Promise<void> {
    if (this.uncounted > 0) {
      this.log.warn(
        `${this.uncounted} calls were not counted: over ${MAX_COUNTERS} pairs of key and operation at once.`,
      );
      this.uncounted = 0;
    }
    const names = [...this.counters.keys()];
    this.isWriting = true;
    try {
      for (let first = 0; first < names.length; first += MAX_COUNTERS_PER_STATEMENT) {
        await this.writeSome(names.slice(first, first + MAX_COUNTERS_PER_STATEMENT));
      }
    } catch (error) {
      this.failedWrites++;
      this.log.warn(`The usage of API keys could not be written and waits: ${(error as Error).message}`);
    } finally {
      this.isWriting = false;
    }
  }

  private async writeSome(names: readonly string[]): Promise<void> {
    const counters = names.map((name) => this.counters.get(name) as Counter);
    const records = counters.map(toRecord);
    await this.repository.add(records);
    for (const [index, counter] of counters.entries()) {
      // Calls during the write remain.
      counter.calls -= (records[index] as UsageRecord).calls;
      if (counter.calls === 0) this.counters.delete(names[index] as string);
    }
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
