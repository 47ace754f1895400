import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import { StartupError } from '#runtime';
import type { Findings, MigrationStatus } from '#postgres';
import { type CommandContext, migrationsOf, readConfig } from '#definition';
import { resultText, sentence, showProgress, table } from './terminal.js';

/** Adds `migrate`, `migrate:status`, `migrate:revert` and `move`. */
export function addDatabaseCommands(program: Command, context: CommandContext): void {
  const tell = (line: string): void => context.tell(`${line}\n`);
  program
    .command('migrate')
    .description('apply the pending migrations')
    .option('--dry-run', 'apply nothing: print what is pending, and whether it is declared backward compatible')
    .action(async ({ dryRun }: { dryRun?: boolean }) => {
      const { foreignSchema, migrate } = await import('#postgres');
      if (dryRun) {
        const { status } = await printStatus(context, ({ appliedAt }) => appliedAt === undefined);
        report(context, foreignSchema(status));
        return;
      }
      const applied = await context.withDatabase('any', (dataSource) => migrate(dataSource, tell));
      context.print(applied.length === 0 ? 'The schema is current.\n' : `Applied migrations: ${applied.length}.\n`);
    });
  program
    .command('migrate:status')
    .description('show which migrations are applied; exit code 1 unless this version can run on the schema')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { fault, warnings } = await printStatus(context, () => true, json);
      for (const warning of warnings) tell(`${context.application.product.name}: ${warning}`);
      report(context, fault);
    });
  program
    .command('migrate:revert')
    .description('revert the last applied migration; this may delete data')
    .action(async () => {
      const { revertLastMigration } = await import('#postgres');
      const reverted = await context.withDatabase('any', (dataSource) => revertLastMigration(dataSource, tell));
      context.print(reverted === undefined ? 'No migration is applied.\n' : `Reverted ${reverted}.\n`);
    });
  program
    .command('move')
    .description('move the embedded database to PostgreSQL, all of it or nothing; stop the service first')
    .requiredOption('--to <URL>', 'a database without tables, as the role that owns its schema')
    .action(async ({ to }: { to: string }) => {
      if ((await context.config()).databaseUrl !== undefined) {
        throw new StartupError('move takes the embedded database in DATA_DIR, so DATABASE_URL must not be set.');
      }
      const rows = await context.withDatabase('current', (source) => move(context, source, to, tell));
      context.print(`Moved ${rows} rows. Set DATABASE_URL, and start the service. DATA_DIR is as it was.\n`);
    });
}

async function move(
  { application }: CommandContext,
  source: DataSource,
  to: string,
  tell: (line: string) => void,
): Promise<number> {
  const { moveDatabase } = await import('./move.js');
  try {
    const target = await readConfig(application, { DATABASE_URL: to });
    return await moveDatabase(source, target, await migrationsOf(application), tell, showMoved);
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    throw new StartupError(error.message.replaceAll(/DATABASE_(DIRECT_)?URL/g, '--to'), { cause: error });
  } finally {
    showProgress('');
  }
}

const BAR_LENGTH = 30;

function showMoved(done: number, total: number): void {
  const bar = '#'.repeat((done / total) * BAR_LENGTH).padEnd(BAR_LENGTH, '.');
  showProgress(`[${bar}] ${done} of ${total} rows; Ctrl+C leaves none of them.`);
}

/** Prints why this version cannot run on the schema, and sets the exit code to 1. */
function report(context: CommandContext, fault: StartupError | undefined): void {
  if (fault === undefined) return;
  context.tell(`${context.application.product.name}: ${sentence(fault.message)}\n`);
  context.exitCode = 1;
}

/** Prints some of the migrations, and returns all, and what the operator should look at. */
async function printStatus(
  context: CommandContext,
  isShown: (migration: MigrationStatus) => boolean,
  json?: boolean,
): Promise<Findings & { readonly status: readonly MigrationStatus[] }> {
  const { findingsOf, foreignSchema, migrationStatus } = await import('#postgres');
  const { status, ...findings } = await context.withDatabase('inspected', async (dataSource) => ({
    status: await migrationStatus(dataSource),
    ...(await findingsOf(dataSource, context.application.product)),
  }));
  const rows = status
    .filter(isShown)
    .map((migration) => [stateText(migration), migration.appliedAt?.toISOString() ?? '-', migration.name]);
  const none = foreignSchema(status) ? 'No migration of this version is pending.' : 'The schema is current.';
  const text = rows.length === 0 ? none : table(['STATE', 'APPLIED', 'MIGRATION'], rows);
  context.print(resultText(json, status, text));
  return { status, ...findings };
}

function stateText({ appliedAt, isKnown, backwardCompatible }: MigrationStatus): string {
  if (isKnown && appliedAt) return 'applied';
  return `${isKnown ? 'pending' : 'newer'}, ${backwardCompatible ? 'compatible' : 'incompatible'}`;
}
