import { Module } from '@nestjs/common';
import { Config } from '../../config.js';
import { DatabaseMetrics } from './database-metrics.js';
import { ScrapedMetrics } from './scraped-metrics.js';
import { createLogger, LOGGER } from './logger.js';
import { MetricsController } from './metrics.controller.js';
import { Metrics } from './metrics.js';
import { RequestLog } from './request-log.js';

/** Logs and metrics for operators. */
@Module({
  controllers: [MetricsController],
  providers: [
    { provide: LOGGER, inject: [Config], useFactory: createLogger },
    Metrics,
    DatabaseMetrics,
    ScrapedMetrics,
    RequestLog,
  ],
  exports: [Metrics, LOGGER],
})
export class ObservabilityModule {}
