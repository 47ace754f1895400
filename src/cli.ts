import { runCommands } from './cli/run-commands.js';

await runCommands();
