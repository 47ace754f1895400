import { Command, CommanderError } from 'commander';
import { environmentExample } from '#settings';
import { checkDefinition, type CommandContext, type ServiceDefinition, settingsOf } from '#definition';
import { type ApplicationFunctions, OwnContext } from './own-context.js';
import { addDatabaseCommands } from './database.js';
import { addKeyCommands } from './keys.js';
import { runInsteadInService } from './service-client.js';

/** Creates the program with all commands. Nest and TypeORM are imported only when a command runs. */
export function createProgram(context: CommandContext): Command {
  const { application } = context;
  checkDefinition(application);
  const { name, command } = application.product;
  const program = new Command(command)
    .description(`Operate the ${application.info.title}, with its settings in the environment and .env.`)
    .version(application.release, '-V, --version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.print(text),
      writeErr: (text) => context.tell(text),
      // One line: Commander puts what was probably meant into a second one.
      outputError: (text, write) => write(text.replace(/^error:/, `${name}:`).replace(/\n(?=\()/, ' ')),
    });
  // Added last: Commander copies the program's settings to each command when it is added.
  addDatabaseCommands(program, context);
  addKeyCommands(program, context);
  for (const { commands = [] } of [...application.parts, application])
    commands.forEach((one) => one.add(program, context));
  program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => context.print((await context.document()).json));
  program
    .command('settings')
    .description('print the settings, as .env.example')
    .action(async () => context.print(environmentExample(application.info.title, await settingsOf(application))));
  return program;
}

/** Runs a command line, prints its failure if it fails, and returns the exit code. */
export async function runCommand(
  createOne: () => Command,
  context: CommandContext,
  words: readonly string[],
  failureText: ApplicationFunctions['failureText'],
  isRepeated = false,
): Promise<number> {
  try {
    await createOne().parseAsync(words, { from: 'user' });
    return context.exitCode;
  } catch (error) {
    // Commander has already printed the help or the error.
    if (error instanceof CommanderError) return error.exitCode;
    const { ServedDirectoryError } = await import('#embedded-postgres');
    // The service has started meanwhile: it may run the command.
    if (error instanceof ServedDirectoryError && !isRepeated)
      return runCommand(createOne, context, words, failureText, true);
    context.tell(`${await failureText(error, context.application.product.name)}\n`);
    return 1;
  }
}

/** See `runCommands`. */
export async function runProgram(definition: ServiceDefinition, functions: ApplicationFunctions): Promise<void> {
  const context = new OwnContext(definition, functions);
  const words = process.argv.slice(2);
  // Without a listener, a reader that has gone, such as `head`, would end the process with a stack trace.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  const createOne = (): Command =>
    createProgram(context).hook('preAction', (_, command) => runInsteadInService(context, words, command));
  process.exitCode = await runCommand(createOne, context, words, (...failure) => functions.failureText(...failure));
  const failure = await context.printFailure();
  if (failure === undefined || process.exitCode === 1) return;
  context.tell(`${definition.product.name}: ${failure.message}\n`);
  process.exitCode = 1;
}
