import { runCommands } from './cli/program.js';

await runCommands();
