import { Controller, Get, Header, type OnModuleInit, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import cluster from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { AggregatorRegistry, Registry } from 'prom-client';
import { serviceUnavailable } from '#errors';
import { OpenTo, RequireScopes } from '#operations';
import { optional } from '#settings';
import { Metrics } from './metrics.js';

/** Sent by a worker that is scraped to the primary process, which replies with the text of the group's metrics. */
export const GROUP_SCRAPE = 'metrics of the group';

export const METRICS_SETTINGS = {
  metricsToken: optional(
    'METRICS_TOKEN',
    '32 to 255 characters of A-Z a-z 0-9 - . _ ~ + / (and = at the end)',
    'A bearer token for Prometheus that opens /metrics and nothing else, also while the database is unreachable. Not set: only API keys with metrics:read open it.',
    // b64token of RFC 6750, section 2.1.
    (text) => (/^(?=.{32,255}$)[A-Za-z0-9\-._~+/]+=*$/.test(text) ? text : undefined),
  ),
};

/** Time in ms that a worker waits for the primary process, which gives up a worker after 5 s: one may be starting. */
const GROUP_ANSWER_MS = 6_000;

/** Serves scrapes. In a group of processes the response has the metrics of all, whichever process gives it. */
@ApiExcludeController()
@Controller({ path: 'metrics', version: VERSION_NEUTRAL })
export class MetricsController implements OnModuleInit {
  private readonly answers = new EventEmitter().setMaxListeners(0);

  constructor(private readonly metrics: Metrics) {}

  onModuleInit(): void {
    const { worker } = cluster;
    if (worker === undefined) return;
    const { registry } = this.metrics;
    // Series of one process each, so that no sum of them falls when a process ends.
    registry.setDefaultLabels({ process: String(worker.id) });
    AggregatorRegistry.setRegistries(registry);
    new AggregatorRegistry();
    process.on('message', (message) => {
      if (typeof message === 'string') this.answers.emit('text', message);
    });
  }

  /**
   * The metrics of this process or of its group, in Prometheus's text format.
   *
   * @throws ApiError UNAVAILABLE when the primary process of the group does not respond within 6 s
   */
  @Get()
  @RequireScopes('metrics:read')
  @OpenTo('metricsToken')
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  @Header('Cache-Control', 'no-store')
  async readMetrics(): Promise<string> {
    if (cluster.isPrimary) return this.metrics.registry.metrics();
    // Without the callback, an error would be thrown when the primary process has ended.
    process.send?.(GROUP_SCRAPE, undefined, undefined, () => undefined);
    const answer = once(this.answers, 'text', { signal: AbortSignal.timeout(GROUP_ANSWER_MS) });
    const [text] = (await answer.catch(() => {
      throw serviceUnavailable('process_group', 'The metrics of the processes are not available. Try again.');
    })) as [string];
    return text;
  }
}
