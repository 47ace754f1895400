import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { Config } from '#settings';
import { droppedLogLines } from './logger.js';

interface RequestLabels {
  readonly operation: string;
  readonly method: string;
  readonly status: number | 'aborted';
}

/** As many requests are observed together at most. */
const OBSERVED_TOGETHER = 500;

/** The metrics of the process. */
@Injectable()
export class Metrics implements OnApplicationShutdown {
  /** Modules register their own metrics here. */
  readonly registry = new Registry();

  private readonly observations: [labels: RequestLabels, seconds: number][] = [];

  readonly requestDurations = new Histogram({
    name: this.nameOf('http_request_duration_seconds'),
    help: 'Time from the header section of a request to the end of its response. operation is empty where no route matched. status is aborted where the response was not sent completely.',
    labelNames: ['operation', 'method', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [this.registry],
    collect: () => this.observeAll(),
  });

  readonly unavailable = new Counter({
    name: this.nameOf('http_unavailable_total'),
    help: 'Responses 503, and 500 took_too_long, by operation and cause, which docs/operating.md describes. operation is empty where the request was refused before its route was known.',
    labelNames: ['operation', 'cause'] as const,
    registers: [this.registry],
  });

  constructor(@Inject(Config) private readonly config: Pick<Config, 'product'>) {
    collectDefaultMetrics({ register: this.registry });
    // These gauges have the suffix of counters, which promtool refuses, and repeat the sums of those without it.
    for (const kind of ['handles', 'requests', 'resources']) {
      this.registry.removeSingleMetric(`nodejs_active_${kind}_total`);
    }
    registerMetric(Counter, this, {
      name: 'log_lines_dropped_total',
      help: 'Lines of the log that were dropped, because nobody read them in time or they could not be written.',
      read: droppedLogLines,
    });
  }

  /** @internal Counts a request. At the next scrape, or behind some more: many at once take a third of the time of one by one. */
  observeRequest(labels: RequestLabels, seconds: number): void {
    if (this.observations.push([labels, seconds]) >= OBSERVED_TOGETHER) this.observeAll();
  }

  private observeAll(): void {
    for (const [labels, seconds] of this.observations.splice(0)) this.requestDurations.observe(labels, seconds);
  }

  /** @internal */
  nameOf(metric: string): string {
    return `${this.config.product.name}_${metric}`;
  }

  onApplicationShutdown(): void {
    this.registry.clear();
  }
}

/** A metric whose values are kept elsewhere, and read at each scrape, so that requests have no extra cost. */
interface ReadMetric {
  /** Behind the name of the product. */
  readonly name: string;
  readonly help: string;
  readonly labelNames?: string[];
  readonly read: () => number | Iterable<readonly [labels: Record<string, string>, value: number]>;
}

export function registerMetric(
  Metric: typeof Counter | typeof Gauge,
  metrics: Metrics,
  { name, read, ...metric }: ReadMetric,
): void {
  new Metric({
    ...metric,
    name: metrics.nameOf(name),
    registers: [metrics.registry],
    collect() {
      this.reset();
      const values = read();
      const all = typeof values === 'number' ? [[{}, values] as const] : values;
      for (const [labels, value] of all) this.inc(labels, value);
    },
  });
}
