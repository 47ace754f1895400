import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import { serviceUnavailable } from '#errors';
import { Metrics } from './metrics.js';

/** Time in ms that a worker waits for the primary process. It is twice the time that the primary waits for workers. */
const GROUP_ANSWER_MS = 2_000;

/** The metrics of one process at one moment. */
export type Snapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** Messages between the primary process of a group and its workers. */
export type MetricsMessage =
  /** From the worker that Prometheus scrapes, and the answer to it. */
  | { readonly kind: 'group metrics wanted' }
  | { readonly kind: 'group metrics'; readonly text: string }
  /** From the primary process to each worker, and the worker's answer. */
  | { readonly kind: 'metrics wanted' }
  | { readonly kind: 'metrics'; readonly metrics: Snapshot };

/** Makes the answer to a scrape. In a group of processes it contains the metrics of all, whichever process answers. */
@Injectable()
export class ScrapedMetrics implements OnModuleInit {
  private readonly answers = new EventEmitter().setMaxListeners(0);
  private readonly log = new Logger(ScrapedMetrics.name);

  constructor(private readonly metrics: Metrics) {}

  onModuleInit(): void {
    if (cluster.isPrimary) return;
    process.on('message', (message: MetricsMessage) => {
      if (message.kind === 'metrics wanted') {
        this.metrics.registry
          .getMetricsAsJSON()
          .then((metrics) => tell(process, { kind: 'metrics', metrics }))
          // Without an answer, the primary process uses this worker's last metrics.
          .catch((error: unknown) => this.log.error('The metrics of this process could not be collected.', error));
      } else if (message.kind === 'group metrics') {
        this.answers.emit('text', message.text);
      }
    });
  }

  /**
   * The metrics of this process or of its group, in Prometheus's text format.
   *
   * @throws ApiError UNAVAILABLE when the primary process of the group does not answer within 2 s
   */
  async text(): Promise<string> {
    if (cluster.isPrimary) return this.metrics.registry.metrics();
    const answer = once(this.answers, 'text', { signal: AbortSignal.timeout(GROUP_ANSWER_MS) });
    tell(process, { kind: 'group metrics wanted' });
    const [text] = (await answer.catch(() => {
      throw serviceUnavailable('process_group', 'The metrics of the processes are not available. Try again.');
    })) as [string];
    return text;
  }
}

/** Sends a message. Does nothing if the receiver has ended. */
export function tell(receiver: Worker | NodeJS.Process, message: MetricsMessage): void {
  (receiver as { send?: (message: MetricsMessage, done: () => void) => void }).send?.(message, () => undefined);
}
