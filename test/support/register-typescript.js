import { register } from 'node:module';

/** Lets Node import this project's TypeScript. For `node --import` and the global set-ups. */
register('./typescript-loader.js', import.meta.url);
