import * as modules from 'node:module';
import * as hooks from './typescript-loader.js';

/** Lets Node import this project's TypeScript. For `node --import` and the global set-ups. */
// Node 26 warns of hooks in another thread. Older ones have none in the same thread, or fail with them, as 24.11.0 does.
if (parseInt(process.versions.node) >= 26) modules.registerHooks(hooks);
else modules.register('./typescript-loader.js', import.meta.url);
