import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../clock.js';
import { KeyUsageRepository, type UsageRecord } from './key-usage.repository.js';

/** Time in ms between two writes. A crash loses at most the calls of this time. */
const WRITE_INTERVAL_MS = 5_000;

/** Largest number of counters (one per key, operation and day) in one process. Calls beyond them are not counted. */
const MAX_COUNTERS = 10_000;

/** Characters of a `User-Agent` that are stored. */
const MAX_USER_AGENT_LENGTH = 200;

const DAY_MS = 86_400_000;

/** Calls not yet written. The counter is reused after a write, so counting a call is an addition. */
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
 * Counts every call with a valid key, whatever its answer. Counts are kept in memory, and written in one statement
 * every 5 s and at shutdown. If a write fails, the counts are kept for the next one.
 */
@Injectable()
export class KeyUsage implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsage.name);
  /** Counters of the current day, by key and operation. */
  private readonly counters = new Map<bigint, Map<string, Counter>>();
  /** Counters of earlier days that are not yet written. */
  private earlier: Counter[] = [];
  private size = 0;
  private uncounted = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> | undefined;

  constructor(
    private readonly repository: KeyUsageRepository,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.write(), WRITE_INTERVAL_MS).unref();
  }

  /** Runs after the last answer, while the database is still open. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.writing;
    await this.write();
  }

  count(keyId: bigint, operation: string, userAgent: string | undefined): void {
    const now = this.clock.now();
    let counter = this.counters.get(keyId)?.get(operation);
    if (counter === undefined || counter.day !== Math.floor(now / DAY_MS)) {
      counter = this.createCounter(keyId, operation, Math.floor(now / DAY_MS));
      if (counter === undefined) {
        this.uncounted++;
        return;
      }
    }
    counter.calls++;
    counter.lastCallAt = now;
    counter.userAgent = userAgent;
  }

  /** Writes the counts. Concurrent calls share one write. After an error the next write tries again. */
  write(): Promise<void> {
    return (this.writing ??= this.writeOnce().finally(() => (this.writing = undefined)));
  }

  private createCounter(keyId: bigint, operation: string, day: number): Counter | undefined {
    if (this.size >= MAX_COUNTERS) return undefined;
    let ofKey = this.counters.get(keyId);
    if (ofKey === undefined) {
      ofKey = new Map<string, Counter>();
      this.counters.set(keyId, ofKey);
    }
    const ofAnotherDay = ofKey.get(operation);
    if (ofAnotherDay) this.earlier.push(ofAnotherDay);
    const counter = { keyId, operation, day, calls: 0, lastCallAt: 0, userAgent: undefined };
    ofKey.set(operation, counter);
    this.size++;
    return counter;
  }

  private async writeOnce(): Promise<void> {
    if (this.uncounted > 0) {
      this.log.warn(
        `${this.uncounted} calls were not counted: over ${MAX_COUNTERS} pairs of key and operation at once.`,
      );
      this.uncounted = 0;
    }
    const counters = [...this.earlier, ...[...this.counters.values()].flatMap((ofKey) => [...ofKey.values()])];
    const called = counters.filter(({ calls }) => calls > 0);
    const records = called.map(toRecord);
    try {
      if (records.length > 0) await this.repository.add(records);
    } catch (error) {
      this.log.warn(`The usage of API keys could not be written and waits: ${(error as Error).message}`);
      return;
    }
    called.forEach((counter, index) => (counter.calls -= (records[index] as UsageRecord).calls));
    this.removeIdle(new Set(counters.filter((counter) => !called.includes(counter))));
  }

  /** Removes counters without calls since the last write. */
  private removeIdle(idle: ReadonlySet<Counter>): void {
    this.earlier = this.earlier.filter(({ calls }) => calls > 0);
    for (const [keyId, ofKey] of this.counters) {
      for (const [operation, counter] of ofKey) {
        if (counter.calls === 0 && idle.has(counter)) ofKey.delete(operation);
      }
      if (ofKey.size === 0) this.counters.delete(keyId);
    }
    this.size = [...this.counters.values()].reduce((sum, ofKey) => sum + ofKey.size, this.earlier.length);
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
