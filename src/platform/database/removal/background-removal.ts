import { Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';

/** The outcome of one statement. */
export interface RemovedBatch {
  readonly rows: number;
  /** Whether more rows may be left to remove. */
  readonly isThereMore: boolean;
}

/** Settings of a `BackgroundRemoval`. */
export interface RemovalOptions {
  /** What the rows are, for the log. */
  readonly what: string;
  /** Time in ms between the starts of two runs. */
  readonly intervalMs: number;
  /** Pause in ms between two statements of a run, in which only requests use the database. */
  readonly pauseMs: number;
}

/**
 * Removes expired rows in the background, in small batches, so that no request waits for a long statement. The first run
 * begins at the start of the service. Several instances may remove rows at the same time. If the process stops during a run,
 * another process, or the next start, removes the remaining rows.
 */
export class BackgroundRemoval implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger(BackgroundRemoval.name);
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<number> | undefined;

  /** @param removeBatch runs one statement that removes a limited number of rows */
  constructor(
    private readonly removeBatch: () => Promise<RemovedBatch>,
    private readonly options: RemovalOptions,
  ) {}

  onApplicationBootstrap(): void {
    void this.attempt();
    this.timer = setInterval(() => void this.attempt(), this.options.intervalMs).unref();
  }

  /** Stops after the current statement. */
  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    await this.running?.catch(() => undefined);
  }

  /** Removes all expired rows and returns their number. A call during a run shares that run's outcome. */
  remove(): Promise<number> {
    return (this.running ??= this.removeAll().finally(() => (this.running = undefined)));
  }

  /** Runs once. After an error the next run tries again. */
  private async attempt(): Promise<void> {
    try {
      await this.remove();
    } catch (error) {
      this.log.warn(`${this.options.what} could not be removed and wait: ${(error as Error).message}`);
    }
  }

  private async removeAll(): Promise<number> {
    const { signal } = this.stopping;
    let count = 0;
    while (!signal.aborted) {
      const { rows, isThereMore } = await this.removeBatch();
      count += rows;
      if (!isThereMore) break;
      await sleep(this.options.pauseMs, undefined, { signal }).catch(() => undefined);
    }
    return count;
  }
}
