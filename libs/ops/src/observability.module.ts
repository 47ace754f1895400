import { Global, Module } from '@nestjs/common';
import { Config } from '#settings';
import { HealthController } from './health.controller.js';
import { createLogger, LOGGER } from './logger.js';
import { MetricsController } from './metrics.controller.js';
import { Metrics } from './metrics.js';
import { Readiness } from './readiness.js';
import { RequestLog } from './request-log.js';
import { ServiceMetrics } from './service-metrics.js';

/** Log, metrics and health. Global: modules register metrics in `Metrics`, and checks of their own in `Readiness`. */
@Global()
@Module({
  controllers: [HealthController, MetricsController],
  providers: [
    { provide: LOGGER, inject: [Config], useFactory: createLogger },
    Metrics,
    Readiness,
    ServiceMetrics,
    RequestLog,
  ],
  exports: [Metrics, Readiness, LOGGER],
})
export class ObservabilityModule {}
