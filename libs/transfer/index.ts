export { transfer } from './src/part.js';
