import { register } from 'node:module';

/** For `node --import` and the global set-ups: from here on, Node imports this project's TypeScript. */
register('./typescript-loader.js', import.meta.url);
