import type { Command } from 'commander';
import type { TransferSummary } from '../../platform/database/transfer/export.js';
import type { CommandContext } from '../command/command-context.js';
import { requiredOption } from '../command/options.js';
import { resultText, table } from '../command/output-text.js';
import type { Terminal } from '../command/terminal.js';
import { openInputFile } from './input-file.js';
import { STANDARD_STREAM } from './output-file.js';

/** Adds `export` and `import`. */
export function addTransferCommands(program: Command, context: CommandContext, version: string): void {
  addExport(program, context, version);
  addImport(program, context);
}

function addExport(program: Command, context: CommandContext, version: string): void {
  const { terminal } = context;
  program
    .command('export')
    .description(
      'write the whole database into a file: animals, keys (as hashes), usage, tables of other features;\n' +
        'the service may run meanwhile',
    )
    .addOption(requiredOption('--to <file>', 'a new file, gzipped if its name ends with .gz; - is standard output'))
    .option('--overwrite', 'replace the file if it exists')
    .option('--json', 'print JSON')
    .action(async ({ to, overwrite, json }: { to: string; overwrite?: boolean; json?: boolean }) => {
      const { exportDatabase } = await import('../../platform/database/transfer/export.js');
      const file = await context.createFile(to, overwrite === true);
      try {
        const summary = await context.withDatabase((dataSource) =>
          exportDatabase(dataSource, {
            ...context.exportOptions,
            service: version,
            write: (bytes) => file.write(bytes),
            onProgress: progressIn(terminal),
          }),
        );
        await file.complete();
        const text = resultText(json, summary, summaryText('Exported', summary));
        if (to === STANDARD_STREAM) terminal.tell(text);
        else terminal.print(text);
      } finally {
        await file.discard();
      }
    });
}

function addImport(program: Command, context: CommandContext): void {
  const { terminal } = context;
  program
    .command('import')
    .description(
      'put what export has written into a database that is migrated and empty; all of it, or nothing;\n' +
        'stop the service meanwhile',
    )
    .addOption(requiredOption('--from <file>', 'a file of export, gzipped or not; - is standard input'))
    .option('--replace', 'delete everything that the database holds')
    .option('--json', 'print JSON')
    .action(async ({ from, replace, json }: { from: string; replace?: boolean; json?: boolean }) => {
      const { importDatabase } = await import('../../platform/database/transfer/import.js');
      const source = await openInputFile(from);
      const summary = await context.withCurrentDatabase((dataSource) =>
        importDatabase(dataSource, source, { replace: replace === true, onProgress: progressIn(terminal) }),
      );
      terminal.print(resultText(json, summary, summaryText('Imported', summary)));
    });
}

function progressIn(terminal: Terminal): (done: number, total: number) => void | Promise<void> {
  return (done, total) => terminal.progress(done, total, 'rows');
}

function summaryText(done: string, { rows, tables }: TransferSummary): string {
  const lines = tables.map(({ name, rows: count }) => [name, count.toString()]);
  return `${done} ${rows} rows.\n\n${table(['TABLE', 'ROWS'], lines)}`;
}
