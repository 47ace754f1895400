export { processes } from './src/part.js';
