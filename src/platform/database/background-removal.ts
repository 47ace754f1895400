import { setTimeout as sleep } from 'node:timers/promises';

/** What one statement has removed. */
export interface RemovedBatch {
  readonly rows: number;
  /** Whether there may be more of what is to be removed. */
  readonly isThereMore: boolean;
}

/**
 * Removes rows that are past their time, in the background and in small batches, so that no request waits for it. Several
 * instances may do so at once. What is left when the process stops, another one or the next start finds.
 */
export class BackgroundRemoval {
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<number> | undefined;

  /**
   * @param removeBatch one statement that removes few rows
   * @param intervalMs time in ms between two runs
   * @param pauseMs time in ms that the database is left to the requests between two statements of a run
   * @param onFailure is told what went wrong; it is tried again with the next run
   */
  constructor(
    private readonly removeBatch: () => Promise<RemovedBatch>,
    private readonly intervalMs: number,
    private readonly pauseMs: number,
    private readonly onFailure: (error: Error) => void,
  ) {}

  /** Runs again and again; the first time when `intervalMs` have passed. */
  start(): void {
    this.timer = setInterval(() => void this.attempt(), this.intervalMs).unref();
  }

  /** Runs once; what goes wrong is told to `onFailure`. */
  async attempt(): Promise<void> {
    await this.run().catch(this.onFailure);
  }

  /** Removes all there is, and returns how many rows. One run at a time; whoever asks meanwhile shares its outcome. */
  run(): Promise<number> {
    return (this.running ??= this.removeAll().finally(() => (this.running = undefined)));
  }

  /** Ends a run behind the statement that it waits for. */
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
