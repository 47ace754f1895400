import { Command, CommanderError } from 'commander';
import { readRelease } from '../app.release.js';
import { failureText } from '../start/failure-text.js';
import type { CommandContext } from './command/command-context.js';
import { addDatabaseCommands } from './database.js';
import { addDeprecationCommands } from './deprecations.js';
import { addKeyCommands } from './keys.js';
import { addOpenApiCommand } from './openapi.js';
import { CommandError } from './command/command-error.js';
import { isRequired } from './command/options.js';
import { addGrantsCommand } from './grants.js';
import { addTransferCommands } from './transfer/transfer-commands.js';

/** Creates the program with all commands. Nest and TypeORM are imported only when a command runs. */
export function createProgram(context: CommandContext): Command {
  const program = new Command('petstore')
    .description(
      'Operate the Pet Store Service. Settings come from the environment and .env, as for the service itself.',
    )
    .version(readRelease(), '-V, --version', 'print the version')
    .showSuggestionAfterError()
    .showHelpAfterError('(see --help)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.terminal.print(text),
      writeErr: (text) => context.terminal.tell(text),
    });
  program.hook('preAction', (_, command) => {
    const missing = command.options.find(
      (option) => isRequired(option) && command.getOptionValue(option.attributeName()) === undefined,
    );
    if (missing) command.error(`error: required option '${missing.flags}' not specified`);
  });
  // Added last: Commander copies the program's settings to each command when it is added.
  addDatabaseCommands(program, context);
  addGrantsCommand(program, context);
  addTransferCommands(program, context, readRelease());
  addKeyCommands(program, context);
  addDeprecationCommands(program, context);
  addOpenApiCommand(program, context);
  return program;
}

/** Runs a command line, prints its failure if it fails, and returns the exit code. */
export async function runCommand(program: Command, context: CommandContext, words: readonly string[]): Promise<number> {
  try {
    await program.parseAsync(withHelpLast(program, words), { from: 'user' });
    return context.exitCode;
  } catch (error) {
    // Commander has already printed the help or the error.
    if (error instanceof CommanderError) return error.exitCode;
    context.terminal.tell(`${error instanceof CommandError ? `petstore: ${error.message}` : failureText(error)}\n`);
    return 1;
  }
}

/** Turns `help keys create` into `keys create --help`: Commander's own `help` takes one word only. */
function withHelpLast(program: Command, [first, ...words]: readonly string[]): string[] {
  if (first === 'help' && program.commands.some((command) => command.name() === words[0])) return [...words, '--help'];
  return first === undefined ? [] : [first, ...words];
}
