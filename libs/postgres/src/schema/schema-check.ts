import { StartupError } from '#errors';
import { product } from '#settings';
import type { MigrationStatus } from './migration-history.js';

/**
 * Why this version cannot run on a schema with these migrations, and what to do; undefined if it can. It cannot if the schema
 * lacks a migration of this version, or has one that this version does not know and that is not declared backward compatible.
 */
export function schemaFault(status: readonly MigrationStatus[]): StartupError | undefined {
  const missing = status.filter(({ appliedAt }) => appliedAt === undefined).map(({ name }) => name);
  if (missing.length > 0) {
    const state = missing.length === status.length ? 'empty' : `outdated: it lacks ${missing.join(', ')}`;
    return new StartupError(`The database schema is ${state}. Run: ${product().command} migrate`);
  }
  const incompatible = status.filter(({ isKnown, backwardCompatible }) => !isKnown && !backwardCompatible);
  if (incompatible.length > 0) {
    const names = incompatible.map(({ name }) => name).join(', ');
    return new StartupError(
      `The database schema is newer than this version and not backward compatible: it has ${names}. ` +
        `Start the version that applied it, or revert with that version: ${product().command} migrate:revert`,
    );
  }
  return undefined;
}
