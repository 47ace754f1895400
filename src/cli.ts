import { Command, CommanderError } from 'commander';
import { addDatabaseCommands } from './cli/database.js';
import { addDeprecationCommands } from './cli/deprecations.js';
import { addKeyCommands } from './cli/keys.js';
import { addOpenApiCommand } from './cli/openapi.js';
import { CommandError } from './cli/terminal.js';
import { loadEnvironmentFile } from './config.js';
import { StartupError } from './platform/errors/startup-error.js';

// Whoever asks for help must not wait for what a command needs: each imports that when it runs.
const program = new Command('petstore')
  .description('Operate the Pet Store Service. Settings come from the environment and .env, as for the service itself.')
  .showSuggestionAfterError()
  .showHelpAfterError('(--help tells more)')
  .exitOverride()
  // Commander copies this behaviour to commands that are added from here on.
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
    // Help was asked for, or Commander has told what is wrong.
    process.exitCode = error.exitCode;
  } else if (error instanceof CommandError || error instanceof StartupError) {
    process.stderr.write(`petstore: ${error.message}\n`);
    process.exitCode = 1;
  } else {
    process.stderr.write(`${String((error as Error | undefined)?.stack ?? error)}\n`);
    process.exitCode = 1;
  }
}
