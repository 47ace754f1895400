import type { Command } from 'commander';
import type { DataSource } from 'typeorm';
import { readConfig } from '../config.js';
import { integerArgument, printResult, progressBar, table } from './terminal.js';

/** Largest number of animals that one `seed` adds. */
const MAX_SEED_COUNT = 1_000_000_000;

/** Adds `migrate`, `migrate:status`, `migrate:revert` and `seed`. */
export function addDatabaseCommands(program: Command): void {
  program
    .command('migrate')
    .description('apply the pending migrations')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { migrate } = await import('../platform/database/schema/migrate.js');
      const applied = await withDatabase((dataSource) =>
        migrate(dataSource, (name, done, total) => {
          if (!json) process.stderr.write(`${done}/${total} ${name}\n`);
        }),
      );
      const text = applied.length === 0 ? 'The schema is current.' : `Applied ${applied.length} migration(s).`;
      printResult(json, { applied }, text);
    });

  program
    .command('migrate:status')
    .description('show which migrations are applied; exit code 1 unless the schema matches this version')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { migrationStatus } = await import('../platform/database/schema/migration-history.js');
      const status = await withDatabase(migrationStatus);
      const rows = status.map(({ name, appliedAt, isKnown }) => [
        isKnown ? (appliedAt ? 'applied' : 'pending') : 'unknown to this version',
        appliedAt?.toISOString() ?? '-',
        name,
      ]);
      printResult(json, status, table(['STATE', 'APPLIED', 'MIGRATION'], rows));
      if (!status.every(({ appliedAt, isKnown }) => appliedAt !== undefined && isKnown)) process.exitCode = 1;
    });

  program
    .command('migrate:revert')
    .description('revert the last applied migration; this may delete data')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { revertLastMigration } = await import('../platform/database/schema/migrate.js');
      const reverted = await withDatabase(revertLastMigration);
      const text = reverted === undefined ? 'No migration is applied.' : `Reverted ${reverted}.`;
      printResult(json, { reverted: reverted ?? null }, text);
    });

  program
    .command('seed')
    .description('add made-up animals to the catalogue')
    .requiredOption('--count <n>', 'number of animals', integerArgument('--count', 1, MAX_SEED_COUNT))
    .option('--json', 'print JSON')
    .action(async ({ count, json }: { count: number; json?: boolean }) => {
      const { openCurrentDatabase } = await import('../platform/database/data-source.js');
      const { dataSourceOptions } = await import('../platform/database/data-source-options.js');
      const { seedPets } = await import('../pets/pets.seed.js');
      const dataSource = await openCurrentDatabase(await dataSourceOptions(readConfig()));
      const bar = progressBar(count, 'animals');
      try {
        await seedPets(dataSource, count, (done) => bar.update(done));
      } finally {
        bar.stop();
        await dataSource.destroy();
      }
      printResult(json, { added: count }, `Added ${count} animals.`);
    });
}

async function withDatabase<Result>(work: (dataSource: DataSource) => Promise<Result>): Promise<Result> {
  const { openDatabase } = await import('../platform/database/data-source.js');
  const dataSource = await openDatabase(readConfig());
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
