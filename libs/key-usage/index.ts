export { keyUsage } from './src/part.js';
