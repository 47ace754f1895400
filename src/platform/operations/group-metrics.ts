import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { AggregatorRegistry, Counter, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { ApiError } from '../errors/api-error.js';
import { UNAVAILABLE } from '../errors/error-catalogue.js';
import { Metrics } from './metrics.js';

/** Time in ms that a scrape waits for a process of the group; what it told last then counts. */
const PROCESS_ANSWER_MS = 1_000;

/** Time in ms that a process waits for the sum. */
const GROUP_ANSWER_MS = 2 * PROCESS_ANSWER_MS;

type Snapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** What the first process and those it has started tell each other. */
type Message =
  /** A process was scraped, and asks for the metrics of the group. */
  | { readonly kind: 'group metrics wanted'; readonly scrape: number }
  | { readonly kind: 'group metrics'; readonly scrape: number; readonly text: string }
  /** The first process asks each of the others for its own. */
  | { readonly kind: 'metrics wanted' }
  | { readonly kind: 'metrics'; readonly metrics: Snapshot };

/**
 * The metrics of all processes of a group (`WEB_CONCURRENCY`), whichever of them is scraped: counters and histograms as
 * sums, gauges as prom-client aggregates them. Lives in the first process of the group, which asks the others.
 *
 * A process that does not answer within PROCESS_ANSWER_MS counts with what it told last, and what a process that has ended
 * told last is counted for ever: no counter falls while the group lives.
 */
export class GroupMetrics {
  private readonly own = new Registry();

  readonly restarts = new Counter({
    name: 'petstore_process_restarts_total',
    help: 'Processes of the group that ended and were replaced.',
    registers: [this.own],
  });

  private readonly listening = new Set<Worker>();
  private readonly latest = new Map<Worker, Snapshot>();
  private readonly answered = new Map<Worker, () => void>();
  private readonly ended: Snapshot[] = [];
  private collecting: Promise<string> | undefined;

  constructor() {
    cluster.on('listening', (worker) => this.listening.add(worker));
    cluster.on('exit', (worker) => this.forget(worker));
    cluster.on('message', (worker, message: Message) => {
      if (message.kind === 'group metrics wanted') {
        this.text()
          .then((text) => tell(worker, { kind: 'group metrics', scrape: message.scrape, text }))
          // Without an answer the process that was scraped says 503.
          .catch((error: unknown) =>
            process.emitWarning(`The metrics of the group could not be collected: ${String(error)}`),
          );
      } else if (message.kind === 'metrics') {
        this.latest.set(worker, message.metrics);
        this.answered.get(worker)?.();
      }
    });
  }

  private text(): Promise<string> {
    return (this.collecting ??= this.collect().finally(() => (this.collecting = undefined)));
  }

  private async collect(): Promise<string> {
    const stop = new AbortController();
    const tooLate = sleep(PROCESS_ANSWER_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    await Promise.race([Promise.all([...this.listening].map((worker) => this.ask(worker))), tooLate]);
    stop.abort();
    this.answered.clear();
    this.ended.push(await sum(this.ended.splice(0)).getMetricsAsJSON());
    return sum([await this.own.getMetricsAsJSON(), ...this.ended, ...this.latest.values()]).metrics();
  }

  private ask(worker: Worker): Promise<void> {
    return new Promise((resolve) => {
      this.answered.set(worker, resolve);
      tell(worker, { kind: 'metrics wanted' });
    });
  }

  private forget(worker: Worker): void {
    const metrics = this.latest.get(worker);
    if (metrics !== undefined) this.ended.push(metrics.filter(({ type }) => COUNTS.has(type)));
    this.listening.delete(worker);
    this.latest.delete(worker);
    this.answered.get(worker)?.();
  }
}

/** The types of metrics that only grow; the others tell of a process that is. */
const COUNTS = new Set(['counter', 'histogram'] as unknown[]);

/** The metrics that a scrape of this process shows. */
@Injectable()
export class ScrapedMetrics implements OnModuleInit {
  private readonly waiting = new Map<number, (text: string) => void>();
  private readonly log = new Logger(ScrapedMetrics.name);
  private lastScrape = 0;

  constructor(private readonly metrics: Metrics) {}

  onModuleInit(): void {
    if (cluster.isPrimary) return;
    process.on('message', (message: Message) => {
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

function sum(snapshots: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots as unknown as object[]);
}

/** Sends a message. One that has gone is not told: its end says enough. */
function tell(receiver: Worker | NodeJS.Process, message: Message): void {
  (receiver as { send?: (message: Message, done: () => void) => void }).send?.(message, () => undefined);
}
