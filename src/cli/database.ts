import type { Command } from 'commander';
import type { MigrationStatus } from '../platform/database/schema/migration-history.js';
import type { PlannedMigration, PlannedStatement } from '../platform/database/schema/plan/migration-plan.js';
import type { CommandContext } from './command/command-context.js';
import { integerArgument, requiredOption } from './command/options.js';
import { resultText, table } from './command/output-text.js';
import type { Terminal } from './command/terminal.js';

/** Largest number of animals that one `seed` adds. */
const MAX_SEED_COUNT = 1_000_000_000;

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
    .option('--plan', 'apply nothing: print their SQL and the locks it takes; exit code 1 if one would fail')
    .option('--json', 'print JSON')
    .action(async ({ plan, json }: { plan?: boolean; json?: boolean }) => {
      if (plan) await printPlan(context, json);
      else await applyMigrations(context, json);
    });
}

async function printPlan(context: CommandContext, json: boolean | undefined): Promise<void> {
  const { planMigrations } = await import('../platform/database/schema/plan/migration-plan.js');
  const plan = await context.withDatabase(planMigrations);
  context.terminal.print(resultText(json, plan, planText(plan)));
  if (plan.some(({ failure }) => failure !== undefined)) context.exitCode = 1;
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
    .addOption(
      requiredOption(
        '--count <n>',
        `number of animals to add, 1 to ${MAX_SEED_COUNT}`,
        integerArgument('--count', 1, MAX_SEED_COUNT),
      ),
    )
    .option('--json', 'print JSON')
    .action(async ({ count, json }: { count: number; json?: boolean }) => {
      const { seedPets } = await import('../pets/pets.seed.js');
      await context.withCurrentDatabase((dataSource) =>
        seedPets(dataSource, count, context.seedBatch, (done) => terminal.progress(done, count, 'animals')),
      );
      terminal.print(resultText(json, { added: count }, `Added ${count} animals.`));
    });
}

function lockRetryReport(terminal: Terminal): (name: string, attempt: number) => void {
  return (name, attempt) => terminal.tell(`${name} got no lock in time, attempt ${attempt}. It tries again.\n`);
}

/** The plan as SQL; everything but the statements is in SQL comments. */
function planText(plan: readonly PlannedMigration[]): string {
  if (plan.length === 0) return 'The schema is current.';
  return plan.map(migrationText).join('\n\n');
}

function migrationText({ name, backwardCompatible, inTransaction, statements, failure }: PlannedMigration): string {
  const how = inTransaction ? 'in a transaction' : 'without a transaction, so not tried';
  const heading = `-- ${name}: ${backwardCompatible ? '' : 'not '}backward compatible, ${how}`;
  const end = failure === undefined ? [] : [`-- fails: ${failure.replaceAll('\n', ' ')}`];
  return [heading, ...statements.flatMap(statementLines), ...end].join('\n');
}

function statementLines({ sql, parameters, locks = [] }: PlannedStatement): string[] {
  const values = parameters.map((value, index) => `-- $${index + 1} = ${JSON.stringify(value)}`);
  const taken = locks.map(({ table, mode, blocks }) => `-- locks ${table}: ${mode}, which blocks ${blocks}`);
  return [`${sql};`, ...values, ...taken];
}
