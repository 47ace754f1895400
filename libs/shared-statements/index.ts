export { Batches, type BatchLimits } from './src/batches.js';
