import { Injectable } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { serviceUnavailable } from '#errors';
import { Database } from '#postgres';

/** Longest time in ms of a check, and shortest time between two: the readiness endpoint is public. */
const CHECK_MS = 1_000;

/** What `/health/ready` returns: the state of the database, and the checks that modules add. */
@Injectable()
export class Readiness {
  private readonly checks: (() => Promise<void>)[] = [];
  private answer: ReturnType<Database['readiness']> = Promise.resolve('unreachable');
  private expiresAt = -Infinity;

  /** @internal */
  constructor(readonly database: Database) {}

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

  /** @internal The state of the database. @throws ApiError UNAVAILABLE while a check fails, or the embedded engine is being opened again */
  async verify(): ReturnType<Database['readiness']> {
    if (this.database.isReopening)
      throw serviceUnavailable('database_away', 'The embedded database is being opened again.');
    if (performance.now() >= this.expiresAt) {
      this.expiresAt = performance.now() + CHECK_MS;
      const states = [this.database.readiness(), ...this.checks.map((check) => check())] as const;
      this.answer = Promise.all(states).then(([database]) => database);
    }
    return this.answer;
  }
}
