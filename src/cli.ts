import { CommanderError } from 'commander';
import { OwnContext } from './cli/command/own-context.js';
import { createProgram, runCommand } from './cli/program.js';
import { runInService } from './cli/service/service-client.js';
import { loadEnvironmentFile, readConfig } from './config.js';
import { failureText } from './start-messages.js';

const context = new OwnContext();
try {
  for (const warning of loadEnvironmentFile()) context.terminal.tell(`${warning}\n`);
  const program = createProgram(context);
  const words = process.argv.slice(2);
  program.hook('preAction', async () => {
    const config = readConfig();
    if (config.databaseUrl !== undefined) return;
    const exitCode = await runInService(config, words, context.terminal);
    // Ends the run of the program here, as its help does.
    if (exitCode !== undefined) throw new CommanderError(exitCode, 'petstore.service', 'The service ran the command.');
  });
  process.exitCode = await runCommand(program, context, words);
} catch (error) {
  context.terminal.tell(`${failureText(error)}\n`);
  process.exitCode = 1;
}
context.terminal.stop();
