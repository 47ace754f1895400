import { createRequire } from 'node:module';

// An old Node.js fails to load the modules below, without saying that it is too old.
createRequire(import.meta.url)('../../scripts/check-system.cjs');
const { startService } = await import('./start/start-service.js');
await startService();
