import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { BackgroundRemoval } from '../database/removal/background-removal.js';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';

/** Time in ms between two runs of the removal. */
const REMOVAL_INTERVAL_MS = 60_000;

/** Pause in ms between two statements of a run, in which only requests use the database. */
const REMOVAL_PAUSE_MS = 50;

/** Removes expired keys in the background. `idempotency-key.repository.ts` defines the 24 h after which a key expires. */
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

  /** Removes all expired keys, and returns their number. A call during a run shares that run's outcome. */
  remove(): Promise<number> {
    return this.removal.run();
  }
}
