import type { Logger } from '@nestjs/common';

/** Shortest time in ms between two logged warnings. */
export const WARNING_INTERVAL_MS = 60_000;

/** Logs at most one warning a minute: while a collector is unreachable, every export fails. */
export class LimitedWarnings {
  private loggedAt = -Infinity;
  private omitted = 0;

  constructor(private readonly log: Pick<Logger, 'warn'>) {}

  warn(message: string): void {
    const now = performance.now();
    if (now - this.loggedAt < WARNING_INTERVAL_MS) {
      this.omitted++;
      return;
    }
    this.log.warn(this.omitted > 0 ? `${message} (and ${this.omitted} warnings since the last line)` : message);
    this.loggedAt = now;
    this.omitted = 0;
  }
}
