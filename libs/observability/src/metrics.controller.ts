import { Controller, Get, Header, VERSION_NEUTRAL } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Registry } from 'prom-client';
import { RequireScopes } from '#api-keys';
import { ScrapedMetrics } from './scraped-metrics.js';

@ApiExcludeController()
@Controller({ path: 'metrics', version: VERSION_NEUTRAL })
export class MetricsController {
  constructor(private readonly metrics: ScrapedMetrics) {}

  @Get()
  @RequireScopes('metrics:read')
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  @Header('Cache-Control', 'no-store')
  readMetrics(): Promise<string> {
    return this.metrics.text();
  }
}
