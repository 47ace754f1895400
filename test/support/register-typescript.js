import * as modules from 'node:module';
import * as hooks from './typescript-loader.js';

/** Lets Node import this project's TypeScript. For `node --import` and the global set-ups. */
// Node 20 has no hooks in the same thread, and Node 26 warns of the others.
if (modules.registerHooks) modules.registerHooks(hooks);
else modules.register('./typescript-loader.js', import.meta.url);
