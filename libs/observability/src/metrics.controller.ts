import { Controller, Get, Header, type OnModuleInit, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import cluster from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { RequireScopes } from '#api-keys';
import { serviceUnavailable } from '#errors';
import { Metrics } from './metrics.js';

/** Interval in ms at which a worker reports its metrics to the primary process. */
const REPORT_INTERVAL_MS = 1_000;

/** Time in ms that a worker waits for the primary process. */
const GROUP_ANSWER_MS = 2_000;

/** The metrics of one process at one moment. */
export type Snapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** From a worker to the primary process. If the worker is scraped, the response is the text of the group's metrics. */
export interface MetricsReport {
  readonly metrics: Snapshot;
  readonly isScraped: boolean;
}

/** Serves scrapes. In a group of processes the response has the metrics of all, whichever process gives it. */
@ApiExcludeController()
@Controller({ path: 'metrics', version: VERSION_NEUTRAL })
export class MetricsController implements OnModuleInit {
  private readonly answers = new EventEmitter().setMaxListeners(0);

  constructor(private readonly metrics: Metrics) {}

  onModuleInit(): void {
    if (cluster.isPrimary) return;
    process.on('message', (text) => this.answers.emit('text', text));
    // A scrape reports the error of a metric that cannot be collected.
    setInterval(() => void this.report(false).catch(() => undefined), REPORT_INTERVAL_MS).unref();
  }

  /**
   * The metrics of this process or of its group, in Prometheus's text format.
   *
   * @throws ApiError UNAVAILABLE when the primary process of the group does not respond within 2 s
   */
  @Get()
  @RequireScopes('metrics:read')
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  @Header('Cache-Control', 'no-store')
  async readMetrics(): Promise<string> {
    if (cluster.isPrimary) return this.metrics.registry.metrics();
    await this.report(true);
    const answer = once(this.answers, 'text', { signal: AbortSignal.timeout(GROUP_ANSWER_MS) });
    const [text] = (await answer.catch(() => {
      throw serviceUnavailable('process_group', 'The metrics of the processes are not available. Try again.');
    })) as [string];
    return text;
  }

  private async report(isScraped: boolean): Promise<void> {
    const report: MetricsReport = { metrics: await this.metrics.registry.getMetricsAsJSON(), isScraped };
    // Without the callback, an error would be thrown when the primary process has ended.
    process.send?.(report, undefined, undefined, () => undefined);
  }
}
