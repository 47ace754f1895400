import type { Command } from 'commander';
import { createReadStream, rmSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { STOP_SIGNALS, StartupError } from '#runtime';
import { type CommandContext } from '#definition';
import { runInService, showProgress } from '#commands';

/** The path that means standard output, or standard input. */
const STANDARD_STREAM = '-';

type Write = (text: string | Buffer) => Promise<void>;

/** Adds `export` and `import`. */
export function addTransferCommands(program: Command, context: CommandContext): void {
  program
    .command('export')
    .description(
      'write the whole database as a script of SQL: the tables of all features, and keys (as hashes);\n' +
        'the service may run meanwhile',
    )
    .requiredOption('--to <file>', 'a new file; - is standard output')
    .action(async ({ to }: { to: string }) => {
      const produce = (write: Write): Promise<string> => exportAll(context, write);
      if (to !== STANDARD_STREAM) context.print(await writeFile(to, produce));
      else context.tell(await produce((piece) => context.write(piece)));
    });
  program
    .command('import')
    .description(
      'run what export has written on a database that is migrated and empty; all of it, or nothing;\n' +
        'stop the service meanwhile, and import only files that you trust',
    )
    .requiredOption('--from <file>', 'a file of export; - is standard input')
    .action(async ({ from }: { from: string }) => {
      const { importDatabase } = await import('./import.js');
      const rows = await context.withDatabase('current', (dataSource) =>
        importDatabase(dataSource, context.application.product.name, readFile(from)),
      );
      context.print(`Imported ${rows} rows.\n`);
    });
}

/** Exports the database, in the service that runs on the embedded one if there is one. Returns a message. */
async function exportAll(context: CommandContext, write: Write): Promise<string> {
  const { application } = context;
  const isService = context.pause !== undefined;
  const { databaseUrl, dataDir } = await context.config();
  if (!isService && databaseUrl === undefined) {
    const end = await runInService(dataDir, { words: ['export', '--to', STANDARD_STREAM] }, write);
    if (end?.exitCode === 0) return end.messages;
    if (end !== undefined)
      throw new StartupError(end.messages.replace(new RegExp(`^${application.product.name}: |\\n$`, 'g'), ''));
  }
  const { exportDatabase } = await import('./export.js');
  const rows = await context.withDatabase('any', (dataSource) =>
    exportDatabase(dataSource, application, isService, write),
  );
  return `Exported ${rows} rows.\n`;
}

/**
 * Writes a new file that only its owner may read, and waits until it is on the disk.
 *
 * @throws StartupError when the file exists or cannot be written; any error of `produce`. No file is left then
 */
async function writeFile(path: string, produce: (write: Write) => Promise<string>): Promise<string> {
  const fail = (error: unknown): never => {
    throw fileError(path, 'written', error);
  };
  const file = await open(path, 'wx', 0o600).catch(fail);
  const abandon = (_: NodeJS.Signals, number: number): void => {
    rmSync(path, { force: true });
    process.exit(128 + number);
  };
  STOP_SIGNALS.forEach((signal) => process.once(signal, abandon));
  let bytes = 0;
  try {
    const text = await produce((piece) => {
      bytes += piece.length;
      showProgress(`${bytes} bytes; Ctrl+C deletes the file.`);
      return file.appendFile(piece).catch(fail);
    });
    await file.sync();
    STOP_SIGNALS.forEach((signal) => process.off(signal, abandon));
    return text;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    showProgress('');
    await file.close();
  }
}

async function* readFile(path: string): AsyncGenerator<Buffer> {
  try {
    yield* (path === STANDARD_STREAM ? process.stdin : createReadStream(path)) as AsyncIterable<Buffer>;
  } catch (error) {
    throw fileError(path, 'read', error);
  }
}

function fileError(path: string, action: 'read' | 'written', error: unknown): StartupError {
  return new StartupError(`${path} cannot be ${action}: ${(error as Error).message}.`);
}
