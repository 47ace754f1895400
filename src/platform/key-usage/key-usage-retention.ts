import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../clock.js';
import { BackgroundRemoval } from '../database/removal/background-removal.js';
import { KeyUsageRepository } from './key-usage.repository.js';

/** Time in ms between two deletions of old usage. */
const INTERVAL_MS = 3_600_000;

/** Pause in ms between two statements of a deletion, in which other statements can run. */
const PAUSE_MS = 100;

const DAY_MS = 86_400_000;

/** Days for which usage is kept, today included: a year, and some days to look at it. */
const KEPT_DAYS = 400;

/** The first day, in UTC, whose usage is kept. */
export function firstKeptDay(now: number): string {
  return new Date(now - (KEPT_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
}

/** Deletes the usage of API keys that is older than 400 days, at start and then hourly. */
@Injectable()
export class KeyUsageRetention implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(KeyUsageRetention.name);
  private readonly removal: BackgroundRemoval;

  constructor(repository: KeyUsageRepository, clock: Clock) {
    this.removal = new BackgroundRemoval(
      () => repository.deleteBefore(firstKeptDay(clock.now())),
      INTERVAL_MS,
      PAUSE_MS,
      ({ message }) => this.log.warn(`Old usage of API keys could not be deleted and waits: ${message}`),
    );
  }

  onApplicationBootstrap(): void {
    void this.deleteOld();
    this.removal.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.removal.stop();
  }

  /** Deletes all old usage. Concurrent calls share one run. After an error the next run tries again. */
  deleteOld(): Promise<void> {
    return this.removal.attempt();
  }
}
