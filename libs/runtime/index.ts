export { activeTrace, setActiveTrace } from './src/active-trace.js';
export { BackgroundRemoval } from './src/background-removal.js';
export { Clock } from './src/clock.js';
export { LimitedWarnings } from './src/limited-warnings.js';
export { printable, printableLines } from './src/printable.js';
export { misfit, StartupError } from './src/startup-error.js';
export { onStopSignal } from './src/stop-signals.js';
export { isTested, untestedDependencies } from './src/tested-releases.js';
