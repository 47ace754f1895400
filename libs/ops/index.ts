export { createLogger, LOG_SETTINGS, LOGGER, NestLogger } from './src/logger.js';
export { Metrics, registerMetric } from './src/metrics.js';
export { Readiness } from './src/readiness.js';
export { ObservabilityModule } from './src/observability.module.js';
export { METRICS_SETTINGS } from './src/metrics.controller.js';
