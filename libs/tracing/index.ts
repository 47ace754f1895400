export { startTracing, TRACING_SETTINGS } from './src/start-tracing.js';
