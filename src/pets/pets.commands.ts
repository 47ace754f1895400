import type { Command } from 'commander';
import { type CommandContext, type Commands, integerArgument, NEW_DATABASE, showProgress } from '#service';

const MAX_SEED_COUNT = 1_000_000_000;

/** Pets per statement of `seed`: few enough for the statement time-out. */
const SEED_BATCH = 20_000;

/** The same while the service runs: requests wait while the embedded engine runs a statement. */
const SEED_BATCH_IN_SERVICE = 500;

/** `seed`: made-up pets. */
export const petsCommands: Commands = { inService: ['seed'], add: addSeed };

function addSeed(program: Command, context: CommandContext): void {
  program
    .command('seed')
    .description('add made-up pets to the catalogue')
    .requiredOption('--count <n>', `number of pets, 1 to ${MAX_SEED_COUNT}`, integerArgument(1, MAX_SEED_COUNT))
    .option(...NEW_DATABASE)
    .action(async ({ count }: { count: number }) => {
      const { seedPets } = await import('./pets.seed.js');
      const { pause } = context;
      const batch = pause === undefined ? SEED_BATCH : SEED_BATCH_IN_SERVICE;
      const show = (done: number): void =>
        showProgress(done < count ? `Added ${done} of ${count} pets; they stay after Ctrl+C.` : '');
      await context.withDatabase('current', (dataSource) => seedPets(dataSource, count, batch, pause ?? show));
      context.print(`Added ${count} pets.\n`);
    });
}
