export { rateLimit } from './src/part.js';
