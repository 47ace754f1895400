export { replicas } from './src/part.js';
