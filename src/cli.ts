import { Command, CommanderError } from 'commander';
import { addDatabaseCommands } from './cli/database.js';
import { addDeprecationCommands } from './cli/deprecations.js';
import { addKeyCommands } from './cli/keys.js';
import { addOpenApiCommand } from './cli/openapi.js';
import { CommandError } from './cli/terminal.js';
import { loadEnvironmentFile } from './config.js';
import { failureText } from './start-messages.js';

// Commands import Nest and TypeORM only when they run, so that --help answers at once.
const program = new Command('petstore')
  .description('Operate the Pet Store Service. Settings come from the environment and .env, as for the service itself.')
  .showSuggestionAfterError()
  .showHelpAfterError('(see --help)')
  .exitOverride()
  // Commander copies the settings above to the commands that are added below.
  .configureHelp({ sortSubcommands: false });

addDatabaseCommands(program);
addKeyCommands(program);
addDeprecationCommands(program);
addOpenApiCommand(program);

try {
  loadEnvironmentFile();
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has already printed the help or the error.
    process.exitCode = error.exitCode;
  } else {
    process.stderr.write(`${error instanceof CommandError ? `petstore: ${error.message}` : failureText(error)}\n`);
    process.exitCode = 1;
  }
}
