import type { Command } from 'commander';
import { createReadStream } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { readConfig } from '../config.js';
import type { TransferSummary } from '../platform/database/transfer/export.js';
import type { CommandContext } from './context.js';
import { CommandError } from './options.js';
import { runInService } from './service-client.js';
import { resultText, table, type Terminal } from './terminal.js';

/** The path that means standard output, or standard input. */
const STANDARD_STREAM = '-';

type Write = (text: string | Buffer) => Promise<void>;

/** Adds `export` and `import`. */
export function addTransferCommands(program: Command, context: CommandContext, version: string): void {
  addExport(program, context, version);
  addImport(program, context);
}

function addExport(program: Command, context: CommandContext, version: string): void {
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
      const produce = async (write: Write): Promise<string> =>
        (await exportInService(context, json, write)) ?? (await exportHere(context, version, json, write));
      if (isService) terminal.tell(await produce((text) => Promise.resolve(terminal.print(text.toString()))));
      else if (to === STANDARD_STREAM) terminal.tell(await writeStandardOutput(produce));
      else terminal.print(await writeFile(to, produce));
    });
}

/** Exports the database of this process. Returns the text of the summary. */
async function exportHere(
  context: CommandContext,
  service: string,
  json: boolean | undefined,
  write: Write,
): Promise<string> {
  const { exportDatabase } = await import('../platform/database/transfer/export.js');
  const onProgress = (done: number, total: number): void | Promise<void> => terminal.progress(done, total, 'rows');
  const { terminal, isService } = context;
  const summary = await context.withDatabase((dataSource) =>
    exportDatabase(dataSource, { service, sharesConnection: isService, write, onProgress }),
  );
  return resultText(json, summary, summaryText('Exported', summary));
}

/** Exports the embedded database of the service that runs. Undefined if none runs. */
async function exportInService(
  { isService }: CommandContext,
  json: boolean | undefined,
  write: Write,
): Promise<string | undefined> {
  const { databaseUrl, dataDir } = readConfig();
  if (isService || databaseUrl !== undefined) return undefined;
  const end = await runInService(dataDir, ['export', '--to', STANDARD_STREAM, ...(json ? ['--json'] : [])], write);
  if (end !== undefined && end.exitCode !== 0) throw new CommandError(end.messages.replace(/^petstore: |\n$/g, ''));
  return end?.messages;
}

function addImport(program: Command, context: CommandContext): void {
  const { terminal } = context;
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
      const source = readFile(from, terminal);
      const summary = await context.withCurrentDatabase((dataSource) =>
        importDatabase(dataSource, source, replace === true),
      );
      terminal.print(resultText(json, summary, summaryText('Imported', summary)));
    });
}

function summaryText(done: string, { rows, tables }: TransferSummary): string {
  const lines = tables.map(({ name, rows: count }) => [name, count.toString()]);
  return `${done} ${rows} rows.\n\n${table(['TABLE', 'ROWS'], lines)}`;
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

/** @throws CommandError when standard output is a terminal, or its reader is gone; any error of `produce` */
async function writeStandardOutput(produce: (write: Write) => Promise<string>): Promise<string> {
  if (process.stdout.isTTY) throw new CommandError('Standard output is a terminal. Name a file, or use a pipe.');
  const write: Write = (text) =>
    new Promise((done, fail) => {
      process.stdout.write(text, (error) => (error ? fail(fileError('standard output', 'written', error)) : done()));
    });
  process.stdout.on('error', () => undefined);
  return produce(write);
}

/** The bytes of a file. Shows how much of it is read. */
async function* readFile(path: string, terminal: Terminal): AsyncGenerator<Buffer> {
  if (path === STANDARD_STREAM) {
    if (process.stdin.isTTY) throw new CommandError('Standard input is a terminal. Name a file, or use a pipe.');
    yield* process.stdin as AsyncIterable<Buffer>;
    return;
  }
  let done = 0;
  try {
    const { size } = await stat(path);
    for await (const piece of createReadStream(path) as AsyncIterable<Buffer>) {
      done += piece.length;
      yield piece;
      await terminal.progress(done, size, 'bytes');
    }
  } catch (error) {
    throw fileError(path, 'read', error);
  }
}

function fileError(path: string, action: 'read' | 'written', error: unknown): CommandError {
  return new CommandError(`${path} cannot be ${action}: ${(error as Error).message}.`);
}
