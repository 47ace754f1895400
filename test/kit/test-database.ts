import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, openDatabase } from '#postgres';
import { readConfig, type ServiceDefinition } from '#service';
import { migrationsOf } from '../../libs/definition/src/definition.js';
import { administer } from '../support/postgresql-database.js';
import { createDatabaseWithRoles } from '../support/postgresql-roles.js';

/** A database for one test file. */
export interface TestDatabase {
  /**
   * Settings that select the database, for `readConfig` or as environment variables of a child process. On PostgreSQL
   * they name the role of the service, which owns nothing and has the rights that `docs/operating.md` grants.
   */
  readonly settings: Readonly<Record<string, string>>;
  /** The same database as the role that owns its schema, for migrations, and to check data without the service. */
  readonly ownerSettings: Readonly<Record<string, string>>;
  /** Drops the database, even while clients are connected. Close an embedded database first. */
  drop(): Promise<void>;
}

/**
 * Creates a database without a schema.
 *
 * @param databaseUrl a PostgreSQL server, as a superuser; undefined for the embedded engine, in a temporary directory
 */
export function createEmptyDatabase(databaseUrl: string | undefined): Promise<TestDatabase> {
  return databaseUrl === undefined ? createDirectory() : createServerDatabase(databaseUrl);
}

/** The directory of an embedded database, to be filled by `fill`. */
export async function createDirectory(fill?: (directory: string) => Promise<void>): Promise<TestDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'petstore-test-'));
  await fill?.(directory);
  const settings = { DATA_DIR: directory };
  return {
    settings,
    ownerSettings: settings,
    drop: () => rm(directory, { recursive: true, force: true }),
  };
}

/** Applies the migrations of a service, in the database that the owner's settings name. */
export async function migrateDatabase(
  definition: ServiceDefinition,
  ownerSettings: Readonly<Record<string, string>>,
): Promise<void> {
  const dataSource = await openDatabase(await readConfig(definition, ownerSettings), await migrationsOf(definition));
  try {
    await migrate(dataSource);
  } finally {
    await dataSource.destroy();
  }
}

async function createServerDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `petstore_test_${randomBytes(4).toString('hex')}`;
  const { serviceUrl, ownerUrl } = await createDatabaseWithRoles(serverUrl, name);
  return {
    settings: { DATABASE_URL: serviceUrl },
    ownerSettings: { DATABASE_URL: ownerUrl },
    drop: async () => {
      await administer(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await administer(serverUrl, `DROP ROLE IF EXISTS ${name}_owner, ${name}_service`);
    },
  };
}
