import { Injectable } from '@nestjs/common';
import { Clock } from '../clock.js';
import { BackgroundRemoval } from '../database/removal/background-removal.js';
import { KeyUsageRepository } from './key-usage.repository.js';

const DAY_MS = 86_400_000;

/** Days for which usage is kept, today included: a year, and some days to look at it. */
const KEPT_DAYS = 400;

/** The first day, in UTC, whose usage is kept. */
export function firstKeptDay(now: number): string {
  return new Date(now - (KEPT_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
}

/** Deletes the usage of API keys that is older than 400 days, at start and then hourly. */
@Injectable()
export class KeyUsageRetention extends BackgroundRemoval {
  constructor(repository: KeyUsageRepository, clock: Clock) {
    super(() => repository.deleteBefore(firstKeptDay(clock.now())), {
      what: 'Counts of old usage of API keys',
      intervalMs: 3_600_000,
      pauseMs: 100,
    });
  }
}
