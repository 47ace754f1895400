export { ProcessGroup } from './src/process-group.js';
