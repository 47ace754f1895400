import { OwnContext } from './cli/own-context.js';
import { createProgram, runCommand } from './cli/program.js';
import { loadEnvironmentFile } from './config.js';
import { failureText } from './start-messages.js';

const context = new OwnContext();
try {
  loadEnvironmentFile();
  process.exitCode = await runCommand(createProgram(context), context, process.argv.slice(2));
} catch (error) {
  context.terminal.tell(`${failureText(error)}\n`);
  process.exitCode = 1;
}
context.terminal.stop();
