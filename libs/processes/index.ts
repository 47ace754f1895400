export { PROCESS_SETTINGS, ProcessGroup } from './src/process-group.js';
