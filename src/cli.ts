#!/usr/bin/env node
import { createRequire } from 'node:module';

// An old Node.js fails to load the modules below, without saying that it is too old.
createRequire(import.meta.url)('../../scripts/check-system.cjs');
const [{ runCommands }, { PET_STORE }] = await Promise.all([import('#service'), import('./app.description.js')]);
await runCommands(PET_STORE, async () => (await import('./app.module.js')).AppModule);
