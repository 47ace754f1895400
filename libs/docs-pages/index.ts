export { docsPages } from './src/part.js';
