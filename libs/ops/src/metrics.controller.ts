import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Registry } from 'prom-client';
import { OpenTo, RequireScopes } from '#operations';
import { optional } from '#settings';
import { Metrics } from './metrics.js';

export const METRICS_SETTINGS = {
  metricsToken: optional(
    'METRICS_TOKEN',
    '32 to 255 characters of A-Z a-z 0-9 - . _ ~ + / (and = at the end)',
    'A bearer token for Prometheus that opens /metrics and nothing else, also while the database is unreachable. Not set: only API keys with metrics:read open it.',
    // b64token of RFC 6750, section 2.1.
    (text) => (/^(?=.{32,255}$)[A-Za-z0-9\-._~+/]+=*$/.test(text) ? text : undefined),
  ),
};

/** Serves scrapes. */
@ApiExcludeController()
@Controller({ path: 'metrics', version: VERSION_NEUTRAL })
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  /** The metrics in Prometheus's text format. */
  @Get()
  @RequireScopes('metrics:read')
  @OpenTo('metricsToken')
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  @Header('Cache-Control', 'no-store')
  readMetrics(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
