import type { DataSource } from 'typeorm';
import { StartupError } from '../../errors/startup-error.js';
import { migrationStatus, type MigrationStatus } from './migration-history.js';

/**
 * Refuses a schema that lacks a migration of this version, or has one that this version does not know and that is not
 * declared backward compatible.
 *
 * @throws StartupError that names the migration and says what to do
 */
export async function assertSchemaIsUsable(dataSource: DataSource): Promise<void> {
  const fault = schemaFault(await migrationStatus(dataSource));
  if (fault !== undefined) throw fault;
}

/** Why this version cannot run on a schema with these migrations, and what to do; undefined if it can. */
export function schemaFault(status: readonly MigrationStatus[]): StartupError | undefined {
  const [missing, ...others] = status.filter(({ appliedAt }) => appliedAt === undefined);
  if (missing !== undefined) {
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    return new StartupError(
      `The database schema is outdated: it lacks ${missing.name}${more}. Run: npm run petstore -- migrate`,
    );
  }
  const incompatible = status.filter(({ isKnown, backwardCompatible }) => !isKnown && !backwardCompatible);
  if (incompatible.length > 0) {
    const names = incompatible.map(({ name }) => name).join(', ');
    return new StartupError(
      `The database schema is newer than this version and not backward compatible: it has ${names}. ` +
        'Start the version that applied it, or revert with that version: npm run petstore -- migrate:revert',
    );
  }
  return undefined;
}
