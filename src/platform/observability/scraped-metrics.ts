import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';
import { Metrics } from './metrics.js';

/** How long a worker waits for the primary process to answer, in ms: twice the time that the primary waits for workers. */
const GROUP_ANSWER_MS = 2_000;

/** The metrics of one process at one moment. */
export type Snapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** Messages between the primary process of a group and its workers. */
export type MetricsMessage =
  /** From a worker that was scraped. */
  | { readonly kind: 'group metrics wanted'; readonly scrape: number }
  | { readonly kind: 'group metrics'; readonly scrape: number; readonly text: string }
  /** From the primary process to each worker. */
  | { readonly kind: 'metrics wanted' }
  | { readonly kind: 'metrics'; readonly metrics: Snapshot };

/** The metrics that a scrape of this process shows. */
@Injectable()
export class ScrapedMetrics implements OnModuleInit {
  private readonly waiting = new Map<number, (text: string) => void>();
  private readonly log = new Logger(ScrapedMetrics.name);
  private lastScrape = 0;

  constructor(private readonly metrics: Metrics) {}

  onModuleInit(): void {
    if (cluster.isPrimary) return;
    process.on('message', (message: MetricsMessage) => {
      if (message.kind === 'metrics wanted') {
        this.metrics.registry
          .getMetricsAsJSON()
          .then((metrics) => tell(process, { kind: 'metrics', metrics }))
          // Without an answer, what was told last counts.
          .catch((error: unknown) => this.log.error('The metrics of this process could not be collected.', error));
      } else if (message.kind === 'group metrics') {
        this.waiting.get(message.scrape)?.(message.text);
      }
    });
  }

  /**
   * The metrics of this process, or of the group that it belongs to, in the text format of Prometheus.
   *
   * @throws ApiError UNAVAILABLE when the first process of the group does not answer
   */
  async text(): Promise<string> {
    if (cluster.isPrimary) return this.metrics.registry.metrics();
    const scrape = ++this.lastScrape;
    const stop = new AbortController();
    try {
      return await Promise.race([
        new Promise<string>((resolve) => {
          this.waiting.set(scrape, resolve);
          tell(process, { kind: 'group metrics wanted', scrape });
        }),
        sleep(GROUP_ANSWER_MS, undefined, { signal: stop.signal }).then(() => {
          throw new ApiError(UNAVAILABLE, 'The metrics of the processes are not available. Try again.', {
            'Retry-After': '1',
          });
        }),
      ]);
    } finally {
      stop.abort();
      this.waiting.delete(scrape);
    }
  }
}

/** Sends a message. Sending to a process that has ended does nothing. */
export function tell(receiver: Worker | NodeJS.Process, message: MetricsMessage): void {
  (receiver as { send?: (message: MetricsMessage, done: () => void) => void }).send?.(message, () => undefined);
}
