import { createRequire } from 'node:module';

// An old Node.js fails to load the modules below, without saying that it is too old.
createRequire(import.meta.url)('../../scripts/check-system.cjs');
const [{ startService }, { AppModule }] = await Promise.all([import('#service'), import('./app.module.js')]);
await startService(AppModule);
