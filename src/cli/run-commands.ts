import { CommanderError } from 'commander';
import type { AppOptions } from '../app.options.js';
import { readConfig } from '../config.js';
import { loadEnvironmentFile } from '../settings/environment-file.js';
import { failureText } from '../start/failure-text.js';
import { OwnContext } from './command/own-context.js';
import { createProgram, runCommand } from './program.js';
import { runInService } from './service/service-client.js';

/**
 * Runs the command line of this process with the settings of the environment and of `.env`, prints its failure if it
 * fails, and sets the exit code of the process.
 *
 * @param options the options given to `startService`, so that commands know the same migrations, scopes and operations
 */
export async function runCommands(options: AppOptions = {}): Promise<void> {
  const context = new OwnContext(options);
  try {
    for (const warning of loadEnvironmentFile()) context.terminal.tell(`${warning}\n`);
    const program = createProgram(context);
    const words = process.argv.slice(2);
    program.hook('preAction', async () => {
      const config = readConfig();
      if (config.databaseUrl !== undefined) return;
      const exitCode = await runInService(config, words, context.terminal);
      // Ends the program before the command runs here, too.
      if (exitCode !== undefined)
        throw new CommanderError(exitCode, 'petstore.service', 'The service ran the command.');
    });
    process.exitCode = await runCommand(program, context, words);
  } catch (error) {
    context.terminal.tell(`${failureText(error)}\n`);
    process.exitCode = 1;
  }
  context.terminal.stop();
}
