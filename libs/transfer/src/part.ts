import type { Part } from '#definition';
import { addTransferCommands } from './transfer.commands.js';

/** The whole database as one file of SQL: the commands `export` and `import`. */
export const transfer = { commands: [{ add: addTransferCommands }] } satisfies Part;
