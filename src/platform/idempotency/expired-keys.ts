import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';

/** Time in ms between two looks for keys past their time. */
const REMOVAL_INTERVAL_MS = 60_000;

/** Time in ms that the database is left to the requests between two statements of one look. */
const REMOVAL_PAUSE_MS = 50;

/**
 * Removes keys past their time, in the background and in small batches. Every instance does so; they share the work
 * and do not wait for each other. What is left when the process stops, another one or the next start finds.
 */
@Injectable()
export class ExpiredKeys implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(ExpiredKeys.name);
  private readonly stop = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private removing: Promise<number> | undefined;

  constructor(private readonly keys: IdempotencyKeyRepository) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.remove().catch((error: Error) => {
        this.log.warn(`Expired idempotency keys could not be removed and wait: ${error.message}`);
      });
    }, REMOVAL_INTERVAL_MS).unref();
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    this.stop.abort();
    await this.removing?.catch(() => undefined);
  }

  /** Removes all that have expired, and returns how many. Whoever asks meanwhile shares the outcome. */
  remove(): Promise<number> {
    return (this.removing ??= this.removeAll().finally(() => (this.removing = undefined)));
  }

  private async removeAll(): Promise<number> {
    let count = 0;
    while (!this.stop.signal.aborted) {
      const { removed, isThereMore } = await this.keys.removeExpired();
      count += removed;
      if (!isThereMore) break;
      await sleep(REMOVAL_PAUSE_MS, undefined, { signal: this.stop.signal }).catch(() => undefined);
    }
    return count;
  }
}
