import type { Command } from 'commander';
import type { MigrationStatus } from '../platform/database/schema/migration-history.js';
import type { CommandContext } from './context.js';
import { integerArgument } from './options.js';
import { resultText, table, type Terminal } from './terminal.js';

/** Largest number of animals that one `seed` adds. */
const MAX_SEED_COUNT = 1_000_000_000;

/** Animals per statement of `seed`: few enough for the statement time-out and for progress reports. */
const SEED_BATCH = 20_000;

/** The same while the service runs: requests wait while the embedded engine runs a statement. */
const SEED_BATCH_IN_SERVICE = 500;

/** Adds `migrate`, `migrate:status`, `migrate:revert` and `seed`. */
export function addDatabaseCommands(program: Command, context: CommandContext): void {
  addMigrate(program, context);
  addMigrateStatus(program, context);
  addMigrateRevert(program, context);
  addSeed(program, context);
}

function addMigrate(program: Command, context: CommandContext): void {
  program
    .command('migrate')
    .description('apply the pending migrations')
    .option('--dry-run', 'apply nothing: print their names, and whether each is declared backward compatible')
    .option('--json', 'print JSON')
    .action(async ({ dryRun, json }: { dryRun?: boolean; json?: boolean }) => {
      if (dryRun) await printPending(context, json);
      else await applyMigrations(context, json);
    });
}

async function printPending(context: CommandContext, json: boolean | undefined): Promise<void> {
  const { migrationStatus } = await import('../platform/database/schema/migration-history.js');
  const pending = (await context.withDatabase(migrationStatus))
    .filter(({ appliedAt }) => appliedAt === undefined)
    .map(({ name, backwardCompatible }) => ({ name, backwardCompatible }));
  const rows = pending.map(({ name, backwardCompatible }) => [name, backwardCompatible ? 'yes' : 'no']);
  const text = rows.length === 0 ? 'The schema is current.' : table(['PENDING', 'BACKWARD COMPATIBLE'], rows);
  context.terminal.print(resultText(json, { pending }, text));
}

async function applyMigrations(context: CommandContext, json: boolean | undefined): Promise<void> {
  const { terminal } = context;
  const { migrate } = await import('../platform/database/schema/migrate.js');
  const applied = await context.withDatabase((dataSource) =>
    migrate(dataSource, {
      onApplied: (name, done, total) => {
        if (!json) terminal.tell(`${done}/${total} ${name}\n`);
      },
      onLockRetry: lockRetryReport(terminal),
    }),
  );
  const text = applied.length === 0 ? 'The schema is current.' : `Applied ${applied.length} migration(s).`;
  terminal.print(resultText(json, { applied }, text));
}

function addMigrateStatus(program: Command, context: CommandContext): void {
  const { terminal } = context;
  program
    .command('migrate:status')
    .description('show which migrations are applied; exit code 1 unless this version can run on the schema')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { migrationStatus } = await import('../platform/database/schema/migration-history.js');
      const { schemaFault } = await import('../platform/database/schema/schema-check.js');
      const status = await context.withDatabase(migrationStatus);
      const rows = status.map((migration) => [
        stateText(migration),
        migration.appliedAt?.toISOString() ?? '-',
        migration.name,
      ]);
      terminal.print(resultText(json, status, table(['STATE', 'APPLIED', 'MIGRATION'], rows)));
      if (schemaFault(status) !== undefined) context.exitCode = 1;
    });
}

function stateText({ appliedAt, isKnown, backwardCompatible }: MigrationStatus): string {
  if (isKnown) return appliedAt ? 'applied' : 'pending';
  return backwardCompatible ? 'newer, compatible' : 'newer, incompatible';
}

function addMigrateRevert(program: Command, context: CommandContext): void {
  const { terminal } = context;
  program
    .command('migrate:revert')
    .description('revert the last applied migration; this may delete data')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { revertLastMigration } = await import('../platform/database/schema/migrate.js');
      const reverted = await context.withDatabase((dataSource) =>
        revertLastMigration(dataSource, { onLockRetry: lockRetryReport(terminal) }),
      );
      const text = reverted === undefined ? 'No migration is applied.' : `Reverted ${reverted}.`;
      terminal.print(resultText(json, { reverted: reverted ?? null }, text));
    });
}

function addSeed(program: Command, context: CommandContext): void {
  const { terminal } = context;
  program
    .command('seed')
    .description('add made-up animals to the catalogue')
    .requiredOption(
      '--count <n>',
      `number of animals to add, 1 to ${MAX_SEED_COUNT}`,
      integerArgument('--count', 1, MAX_SEED_COUNT),
    )
    .option('--json', 'print JSON')
    .action(async ({ count, json }: { count: number; json?: boolean }) => {
      const { seedPets } = await import('../pets/pets.seed.js');
      const batch = context.isService ? SEED_BATCH_IN_SERVICE : SEED_BATCH;
      await context.withCurrentDatabase((dataSource) =>
        seedPets(dataSource, count, batch, (done) => terminal.progress(done, count, 'animals')),
      );
      terminal.print(resultText(json, { added: count }, `Added ${count} animals.`));
    });
}

function lockRetryReport(terminal: Terminal): (name: string, attempt: number) => void {
  return (name, attempt) => terminal.tell(`${name} got no lock in time, attempt ${attempt}. It tries again.\n`);
}
