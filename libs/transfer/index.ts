export { exportDatabase } from './src/export.js';
export { importDatabase } from './src/import.js';
