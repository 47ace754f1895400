export { activeTrace, setActiveTrace } from './src/active-trace.js';
export { Clock } from './src/clock.js';
export { LimitedWarnings } from './src/limited-warnings.js';
export { isSlip, nearestName } from './src/nearest-name.js';
export { printable, printableLines } from './src/printable.js';
export { onStopSignal, STOP_SIGNALS } from './src/stop-signals.js';
export { table } from './src/text-table.js';
