import type { Command } from 'commander';
import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { readConfig } from '../config.js';
import type { CommandContext } from './context.js';
import { CommandError } from './options.js';
import { runInService } from './service-client.js';
import { resultText } from './terminal.js';

/** The path that means standard output, or standard input. */
const STANDARD_STREAM = '-';

type Write = (text: string | Buffer) => Promise<void>;

/** Adds `export` and `import`. */
export function addTransferCommands(program: Command, context: CommandContext, version: string): void {
  const { terminal, isService } = context;
  program
    .command('export')
    .description(
      'write the whole database as a script of SQL: animals, keys (as hashes), usage, tables of other features;\n' +
        'the service may run meanwhile',
    )
    .requiredOption('--to <file>', 'a new file; - is standard output')
    .option('--json', 'print JSON')
    .action(async ({ to, json }: { to: string; json?: boolean }) => {
      const produce = async (write: Write): Promise<string> => {
        const rows = await exportRows(context, version, write);
        return resultText(json, { rows }, `Exported ${rows} rows.`);
      };
      if (isService) terminal.tell(await produce(writeToClient(context)));
      else if (to !== STANDARD_STREAM) terminal.print(await writeFile(to, produce));
      else {
        // A failed write also emits an event, which would end the process.
        process.stdout.on('error', () => undefined);
        terminal.tell(await produce(writeStandardOutput));
      }
    });
  program
    .command('import')
    .description(
      'run what export has written on a database that is migrated and empty; all of it, or nothing;\n' +
        'stop the service meanwhile, and import only files that you trust',
    )
    .requiredOption('--from <file>', 'a file of export; - is standard input')
    .option('--replace', 'delete everything that the database holds')
    .option('--json', 'print JSON')
    .action(async ({ from, replace, json }: { from: string; replace?: boolean; json?: boolean }) => {
      const { importDatabase } = await import('../platform/database/transfer/import.js');
      const rows = await context.withCurrentDatabase((dataSource) =>
        importDatabase(dataSource, readFile(from), replace === true),
      );
      terminal.print(resultText(json, { rows }, `Imported ${rows} rows.`));
    });
}

/** Exports the database, in the service that runs on the embedded one if there is one. Returns the number of rows. */
async function exportRows(context: CommandContext, service: string, write: Write): Promise<number> {
  const { isService } = context;
  const { databaseUrl, dataDir } = readConfig();
  if (!isService && databaseUrl === undefined) {
    const end = await runInService(dataDir, ['export', '--to', STANDARD_STREAM, '--json'], write);
    if (end?.exitCode === 0) return (JSON.parse(end.messages) as { rows: number }).rows;
    if (end !== undefined) throw new CommandError(end.messages.replace(/^petstore: |\n$/g, ''));
  }
  const { exportDatabase } = await import('../platform/database/transfer/export.js');
  return context.withDatabase((dataSource) => exportDatabase(dataSource, service, isService, write));
}

/** In the service: sends the export to the client, and lets requests and the client's reading go on after each piece. */
function writeToClient({ terminal }: CommandContext): Write {
  let pieces = 0;
  return async (text) => {
    terminal.print(text.toString());
    await terminal.progress(++pieces, Infinity, 'pieces');
  };
}

/**
 * Writes a new file that only its owner may read, and waits until it is on the disk.
 *
 * @throws CommandError when the file exists or cannot be written; any error of `produce`. No file is left then
 */
async function writeFile(path: string, produce: (write: Write) => Promise<string>): Promise<string> {
  const fail = (error: unknown): never => {
    throw fileError(path, 'written', error);
  };
  const file = await open(path, 'wx', 0o600).catch(fail);
  try {
    const text = await produce((piece) => file.appendFile(piece).catch(fail));
    await file.sync();
    return text;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** @throws CommandError when the reader of standard output is gone, or its disk is full */
const writeStandardOutput: Write = (text) =>
  new Promise((done, fail) => {
    process.stdout.write(text, (error) => (error ? fail(fileError('standard output', 'written', error)) : done()));
  });

async function* readFile(path: string): AsyncGenerator<Buffer> {
  try {
    yield* (path === STANDARD_STREAM ? process.stdin : createReadStream(path)) as AsyncIterable<Buffer>;
  } catch (error) {
    throw fileError(path, 'read', error);
  }
}

function fileError(path: string, action: 'read' | 'written', error: unknown): CommandError {
  return new CommandError(`${path} cannot be ${action}: ${(error as Error).message}.`);
}
