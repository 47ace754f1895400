import { Global, Module } from '@nestjs/common';
import { Config } from '#settings';
import { HealthController } from './health.controller.js';
import { createLogger, LOGGER } from './logger.js';
import { MetricsController } from './metrics.controller.js';
import { Metrics } from './metrics.js';
import { RequestLog } from './request-log.js';
import { ServiceMetrics } from './service-metrics.js';

/** Log, metrics and health. Global: modules register metrics of their own in `Metrics`. */
@Global()
@Module({
  controllers: [HealthController, MetricsController],
  providers: [{ provide: LOGGER, inject: [Config], useFactory: createLogger }, Metrics, ServiceMetrics, RequestLog],
  exports: [Metrics, LOGGER],
})
export class ObservabilityModule {}
