export { tracing } from './src/part.js';
