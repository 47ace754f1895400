import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { StartupError } from '#runtime';
import type { Product } from '#settings';
import { epochOf, EXACT, timeOf } from '../statements.js';

/** A migration as a file in `migrations/` declares it. */
export interface Migration extends MigrationInterface {
  /**
   * Whether versions of the service that do not know this migration may run on its schema. If false, they are not ready and
   * refuse to start. The value is stored when the migration is applied.
   */
  readonly backwardCompatible: boolean;
}

/** A migration of this version, of the database, or of both. */
export interface MigrationStatus {
  readonly name: string;
  /** When it was applied; undefined while it is pending. */
  readonly appliedAt: Date | undefined;
  /** False for a migration that another version has applied. */
  readonly isKnown: boolean;
  /** Whether versions that do not know the migration may run on its schema. */
  readonly backwardCompatible: boolean;
}

/** The history of migrations, if it exists, and the schema in which it could. */
const HISTORY = `${EXACT}SELECT to_regclass('schema_migration')::text AS history, current_schema()::text AS schema`;

/**
 * Every migration of this version and of the database, oldest first.
 *
 * @param through the connection to use, if the caller has one
 * @throws StartupError when no schema of the search_path exists
 */
export async function migrationStatus(
  dataSource: DataSource,
  through: DataSource | QueryRunner = dataSource,
): Promise<MigrationStatus[]> {
  const [known, applied] = [knownMigrations(dataSource), await appliedMigrations(through)];
  // Each name ends with its Unix time in ms, 13 digits.
  const byTime = (one: string, other: string): number => Number(one.slice(-13)) - Number(other.slice(-13));
  return [...new Set([...known.keys(), ...applied.keys()])].sort(byTime).map((name) => ({
    name,
    appliedAt: applied.get(name)?.appliedAt,
    isKnown: known.has(name),
    backwardCompatible: (applied.get(name) ?? known.get(name))?.backwardCompatible === true,
  }));
}

/**
 * Why this version cannot run on a schema with these migrations, and what to do; undefined if it can. It cannot if the schema
 * lacks a migration of this version, or has one that this version does not know and that is not declared backward compatible.
 */
export function schemaFault(status: readonly MigrationStatus[], { command }: Product): StartupError | undefined {
  const foreign = foreignSchema(status);
  if (foreign !== undefined) return foreign;
  const missing = missingNames(status);
  if (missing.length === 0) return undefined;
  if (missing.length < status.length) {
    return new StartupError(
      `The database schema is outdated: it lacks ${missing.join(', ')}. Run '${command} migrate'.`,
    );
  }
  return new StartupError(
    `The database schema is empty. Run '${command} migrate'. If that finds nothing to do, its role has another schema, such ` +
      'as "$user", one of its own name: set the same search_path for both roles.',
  );
}

/** Why this version must not change the schema either: somebody else has changed it, and it is not declared compatible. */
export function foreignSchema(status: readonly MigrationStatus[]): StartupError | undefined {
  const foreign = status.filter(({ isKnown, backwardCompatible }) => !isKnown && !backwardCompatible);
  const missing = missingNames(status);
  const namesake = (name: string): string | undefined => missing.find((other) => other.slice(-13) === name.slice(-13));
  const renamed = status.find(({ isKnown, name }) => !isKnown && namesake(name) !== undefined)?.name;
  if (renamed !== undefined && foreign.every(({ name }) => namesake(name) !== undefined)) {
    return new StartupError(
      `Migration ${namesake(renamed)} has the time of ${renamed}, which is applied. ` +
        'If its class was renamed, give it its old name again; otherwise another time.',
    );
  }
  if (foreign.length === 0) return undefined;
  return new StartupError(
    `The database schema is newer than this version and not backward compatible: it has ${foreign.map(({ name }) => name).join(', ')}. ` +
      'Start the version that applied it, or revert with its command migrate:revert. Set the database of another application to ' +
      'an empty one.',
  );
}

function missingNames(status: readonly MigrationStatus[]): string[] {
  return status.filter(({ appliedAt }) => appliedAt === undefined).map(({ name }) => name);
}

/**
 * The migrations of this version by name.
 *
 * @throws StartupError for a migration without a time in its name, with the name of another, or that does not declare
 * `backwardCompatible`
 */
export function knownMigrations(dataSource: DataSource): Map<string, Migration> {
  const known = new Map<string, Migration>();
  for (const migration of dataSource.migrations as Migration[]) {
    const name = migration.name ?? migration.constructor.name;
    if (!/\d{13}$/.test(name)) {
      throw new StartupError(`The class name of migration ${name} must end with its Unix time in ms, 13 digits.`);
    }
    if (known.has(name)) throw new StartupError(`There are two migrations with the name ${name}.`);
    if (typeof migration.backwardCompatible !== 'boolean') {
      throw new StartupError(
        `Migration ${name} does not say whether earlier versions may run on its schema. ` +
          'Add to its class: readonly backwardCompatible = true (or false). See migrations/README.md.',
      );
    }
    known.set(name, migration);
  }
  return known;
}

/** The applied migrations by name, in the order in which they were applied, as the versions that applied them declared them. */
export async function appliedMigrations(
  through: DataSource | QueryRunner,
): Promise<Map<string, Pick<MigrationStatus, 'appliedAt' | 'backwardCompatible'>>> {
  const [{ history, schema }] = (await through.query(HISTORY)) as [Record<'history' | 'schema', string | null>];
  if (schema === null) {
    throw new StartupError(
      'No schema of the search_path exists, or the user of DATABASE_URL may use none. Set the search_path of that user ' +
        'to one, by ALTER ROLE … SET search_path TO public.',
    );
  }
  if (history === null) return new Map();
  const applied = (await through.query(
    `${EXACT}SELECT name, ${epochOf('applied_at')} AS epoch, backward_compatible::text AS compatible FROM schema_migration ORDER BY id`,
  )) as Record<'name' | 'epoch' | 'compatible', string>[];
  return new Map(
    applied.map(({ name, epoch, compatible }) => [
      name,
      { appliedAt: timeOf(epoch), backwardCompatible: compatible === 'true' },
    ]),
  );
}
