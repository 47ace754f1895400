import type { Logger } from '@nestjs/common';

const INTERVAL_MS = 1_000;

/** Logs at most one warning in a second, with the number of those in between: many requests fail for the same cause. */
export class LimitedWarnings {
  private nextAt = 0;
  private omitted = 0;

  constructor(private readonly log: Pick<Logger, 'warn'>) {}

  /** @param details further arguments of the log */
  warn(message: string, ...details: unknown[]): void {
    const now = performance.now();
    if (now < this.nextAt) {
      this.omitted++;
      return;
    }
    const others = this.omitted === 0 ? '' : ` (and ${this.omitted} more since the last warning)`;
    this.log.warn(`${message}${others}`, ...details);
    this.nextAt = now + INTERVAL_MS;
    this.omitted = 0;
  }
}
