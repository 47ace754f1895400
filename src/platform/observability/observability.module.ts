import { Module } from '@nestjs/common';
import { Config } from '../../config.js';
import { KeyUsageModule } from '../key-usage/key-usage.module.js';
import { RateLimitModule } from '../rate-limit/rate-limit.module.js';
import { DatabaseMetrics } from './database-metrics.js';
import { ScrapedMetrics } from './scraped-metrics.js';
import { createLogger, LOGGER } from './logger.js';
import { MetricsController } from './metrics.controller.js';
import { Metrics } from './metrics.js';
import { RequestLog } from './request-log.js';
import { ServiceMetrics } from './service-metrics.js';

/** Logs and metrics for operators. */
@Module({
  imports: [KeyUsageModule, RateLimitModule],
  controllers: [MetricsController],
  providers: [
    { provide: LOGGER, inject: [Config], useFactory: createLogger },
    Metrics,
    DatabaseMetrics,
    ServiceMetrics,
    ScrapedMetrics,
    RequestLog,
  ],
  exports: [Metrics, LOGGER],
})
export class ObservabilityModule {}
