import { setTimeout as sleep } from 'node:timers/promises';

/** The outcome of one statement. */
export interface RemovedBatch {
  readonly rows: number;
  /** Whether more rows may be left to remove. */
  readonly isThereMore: boolean;
}

/**
 * Removes expired rows in the background, in small batches, so that no request waits for a long statement. Several
 * instances may remove rows at the same time. If the process stops during a run, another process, or the next start,
 * removes the remaining rows.
 */
export class BackgroundRemoval {
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<number> | undefined;

  /**
   * @param removeBatch runs one statement that removes a limited number of rows
   * @param intervalMs time in ms between the starts of two runs
   * @param pauseMs pause in ms between two statements of a run, in which only requests use the database
   * @param onFailure called with the error of a failed run; the next run tries again
   */
  constructor(
    private readonly removeBatch: () => Promise<RemovedBatch>,
    private readonly intervalMs: number,
    private readonly pauseMs: number,
    private readonly onFailure: (error: Error) => void,
  ) {}

  /** Starts a run every `intervalMs`, the first one after `intervalMs`. */
  start(): void {
    this.timer = setInterval(() => void this.attempt(), this.intervalMs).unref();
  }

  /** Runs once. Never rejects: errors go to `onFailure`. */
  async attempt(): Promise<void> {
    await this.run().catch(this.onFailure);
  }

  /** Removes all expired rows and returns their number. A call during a run shares that run's outcome. */
  run(): Promise<number> {
    return (this.running ??= this.removeAll().finally(() => (this.running = undefined)));
  }

  /** Stops after the current statement. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.running?.catch(() => undefined);
  }

  private async removeAll(): Promise<number> {
    const { signal } = this.stopping;
    let count = 0;
    while (!signal.aborted) {
      const { rows, isThereMore } = await this.removeBatch();
      count += rows;
      if (!isThereMore) break;
      await sleep(this.pauseMs, undefined, { signal }).catch(() => undefined);
    }
    return count;
  }
}
