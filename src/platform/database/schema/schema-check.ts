import type { DataSource } from 'typeorm';
import { StartupError } from '../../errors/startup-error.js';
import { knownMigrations, migrationStatus } from './migration-history.js';

/**
 * Refuses a schema that is older or newer than this version.
 *
 * @throws StartupError that says what to do
 */
export async function assertSchemaIsCurrent(dataSource: DataSource): Promise<void> {
  const status = await migrationStatus(dataSource);
  const pending = status.filter(({ appliedAt }) => appliedAt === undefined).length;
  if (pending > 0) {
    throw new StartupError(
      `The database schema is outdated: ${pending} migration(s) pending. Run: npm run petstore -- migrate`,
    );
  }
  const unknown = status.filter(({ isKnown }) => !isKnown);
  if (unknown.length > 0) {
    throw new StartupError(
      `The database schema is newer than this version: it has ${unknown.map(({ name }) => name).join(', ')}. ` +
        'Start the version that applied it, or revert with that version: npm run petstore -- migrate:revert',
    );
  }
}

/** Whether exactly the migrations of this version are applied. */
export function isSchemaCurrent(dataSource: DataSource, applied: readonly string[]): boolean {
  const known = knownMigrations(dataSource);
  return known.length === applied.length && known.every(({ name }) => applied.includes(name));
}
