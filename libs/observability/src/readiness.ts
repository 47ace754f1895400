import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { serviceUnavailable } from '#errors';

/** Longest time in ms of a check, and shortest time between two: the readiness endpoint is public. */
const CHECK_MS = 1_000;

/** The checks that modules add to `/health/ready`. */
@Injectable()
export class Readiness {
  private readonly checks: (() => Promise<void>)[] = [];
  private answer: Promise<unknown> = Promise.resolve();
  private expiresAt = -Infinity;

  /**
   * Adds a check, which runs at most once a second. While it throws, or has not ended after 1 s, `/health/ready`
   * returns 503 with its name, and the log has its error.
   */
  add(name: string, check: () => unknown): void {
    this.checks.push(async () => {
      const late = sleep(CHECK_MS, undefined, { ref: false }).then(() =>
        Promise.reject(new Error('not ended after 1 s')),
      );
      await Promise.race([Promise.resolve().then(check), late]).catch((cause: unknown) => {
        throw serviceUnavailable('check', `The check '${name}' fails.`, { cause });
      });
    });
  }

  /** @internal @throws ApiError UNAVAILABLE */
  verify(): Promise<unknown> {
    if (performance.now() >= this.expiresAt) {
      this.expiresAt = performance.now() + CHECK_MS;
      this.answer = Promise.all(this.checks.map((check) => check()));
    }
    return this.answer;
  }
}
