import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { BackgroundRemoval } from '../database/removal/background-removal.js';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';

/** Time in ms between two looks for keys past their time. */
const REMOVAL_INTERVAL_MS = 60_000;

/** Time in ms that the database is left to the requests between two statements of one look. */
const REMOVAL_PAUSE_MS = 50;

/** Removes keys past their time, in the background. */
@Injectable()
export class ExpiredKeys implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(ExpiredKeys.name);
  private readonly removal: BackgroundRemoval;

  constructor(keys: IdempotencyKeyRepository) {
    this.removal = new BackgroundRemoval(
      () => keys.removeExpired(),
      REMOVAL_INTERVAL_MS,
      REMOVAL_PAUSE_MS,
      ({ message }) => this.log.warn(`Expired idempotency keys could not be removed and wait: ${message}`),
    );
  }

  onApplicationBootstrap(): void {
    this.removal.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.removal.stop();
  }

  /** Removes all that have expired, and returns how many. Whoever asks meanwhile shares the outcome. */
  remove(): Promise<number> {
    return this.removal.run();
  }
}
