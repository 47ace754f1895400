import type { Logger, OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';

/** Pause in ms between two statements of a run, in which only requests use the database. */
const PAUSE_MS = 50;

/**
 * Removes expired rows in the background, in small batches, so that no request waits for a long statement. The first run begins at the
 * start of the service. Several instances may remove rows at the same time.
 */
export class BackgroundRemoval implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly stopping = new AbortController();
  private running: Promise<void> | undefined;

  /**
   * @param log gets a warning when the rows cannot be removed
   * @param what the rows, for the log
   * @param intervalMs time in ms between two runs
   * @param removeBatch runs one statement that removes a limited number of rows, and returns how many
   */
  constructor(
    private readonly log: Pick<Logger, 'warn'>,
    private readonly what: string,
    private readonly intervalMs: number,
    private readonly removeBatch: () => Promise<number>,
  ) {}

  onApplicationBootstrap(): void {
    this.running = this.repeat();
  }

  /** Stops after the current statement. */
  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  async remove(): Promise<number> {
    let count = 0;
    while (!this.stopping.signal.aborted) {
      const rows = await this.removeBatch();
      if (rows === 0) break;
      count += rows;
      await this.pause(PAUSE_MS);
    }
    return count;
  }

  /** After an error the next run tries again. */
  private async repeat(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      await this.remove().catch((error: Error) => {
        this.log.warn(`${this.what} could not be removed and wait: ${error.message}`);
      });
      await this.pause(this.intervalMs);
    }
  }

  private async pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.stopping.signal, ref: false }).catch(() => undefined);
  }
}
