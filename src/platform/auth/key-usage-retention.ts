import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { Config } from '../../config.js';
import { Clock } from '../clock.js';
import { KeyUsageRepository } from './key-usage.repository.js';

/** Time in ms between two looks for usage that is too old. */
const INTERVAL_MS = 3_600_000;

/** Rows that one statement deletes at the most, and the time in ms that it then leaves to others. */
const BATCH_ROWS = 1_000;
const PAUSE_MS = 100;

const DAY_MS = 86_400_000;

/** The first day, in UTC, of which usage is kept at this time: `days` of them, today included. */
export function firstKeptDay(now: number, days: number): string {
  return new Date(now - (days - 1) * DAY_MS).toISOString().slice(0, 10);
}

/**
 * Deletes the usage of API keys that is older than KEY_USAGE_RETENTION_DAYS: at the start and every hour, in small batches,
 * so that no request waits for it. Several instances may do so at once.
 */
@Injectable()
export class KeyUsageRetention implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsageRetention.name);
  private readonly stop = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private deleting: Promise<void> | undefined;

  constructor(
    private readonly repository: KeyUsageRepository,
    private readonly clock: Clock,
    private readonly config: Config,
  ) {}

  onApplicationBootstrap(): void {
    void this.deleteOld();
    this.timer = setInterval(() => void this.deleteOld(), INTERVAL_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stop.abort();
    await this.deleting;
  }

  /** Deletes what is too old. One run at a time; what fails is tried again with the next one. */
  deleteOld(): Promise<void> {
    return (this.deleting ??= this.deleteInBatches().finally(() => (this.deleting = undefined)));
  }

  private async deleteInBatches(): Promise<void> {
    const day = firstKeptDay(this.clock.now(), this.config.keyUsageRetentionDays);
    try {
      while (!this.stop.signal.aborted && (await this.repository.deleteBefore(day, BATCH_ROWS)) === BATCH_ROWS) {
        await sleep(PAUSE_MS, undefined, { signal: this.stop.signal }).catch(() => undefined);
      }
    } catch (error) {
      this.log.warn(`Old usage of API keys could not be deleted and waits: ${(error as Error).message}`);
    }
  }
}
