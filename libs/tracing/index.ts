export { startTracing } from './src/tracing.js';
