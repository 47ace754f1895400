export { KeyUsageModule } from './src/key-usage.module.js';
export { KeyUsage, type UsageSummary } from './src/key-usage.js';
