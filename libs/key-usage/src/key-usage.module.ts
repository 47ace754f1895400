import { Injectable, Logger, Module } from '@nestjs/common';
import { Counter } from 'prom-client';
import { Metrics, registerMetric } from '#ops';
import { BackgroundRemoval, Clock } from '#runtime';
import { DAY_MS, isoDay, KeyUsage } from './key-usage.js';

/** Days for which usage is kept, today included: a year, and some days to look at it. */
const KEPT_DAYS = 400;

/** Deletes the usage of API keys that is older than 400 days, at start and then hourly. */
@Injectable()
export class KeyUsageRetention extends BackgroundRemoval {
  constructor(usage: KeyUsage, clock: Clock) {
    const log = new Logger(BackgroundRemoval.name);
    const firstKept = (): string => isoDay(clock.now() - (KEPT_DAYS - 1) * DAY_MS);
    super(log, 'Counts of old usage of API keys', 3_600_000, () => usage.deleteBefore(firstKept()));
  }
}

/**
 * Usage of API keys. The module is not global, and not part of the global AuthModule. Nest shuts global modules down
 * last and in undefined order. The last counts must be written before the database, which is global, is closed.
 */
@Module({ providers: [KeyUsage, KeyUsageRetention], exports: [KeyUsage] })
export class KeyUsageModule {
  constructor(metrics: Metrics, keyUsage: KeyUsage) {
    registerMetric(Counter, metrics, {
      name: 'key_usage_write_failures_total',
      help: 'Writes of the usage of API keys that failed. Their counts wait for the next write.',
      read: () => keyUsage.failedWrites,
    });
    registerMetric(Counter, metrics, {
      name: 'key_usage_uncounted_calls_total',
      help: 'Calls that may be missing in the usage of API keys: too many counts waited, or a write was not confirmed.',
      read: () => keyUsage.uncountedCalls,
    });
  }
}
