import { randomBytes } from 'node:crypto';
import { cp } from 'node:fs/promises';
import { createDirectory, type TestDatabase } from '../kit/test-database.js';
import { type Engine, handedOver } from './engines.js';
import { administer, databaseUrl } from './postgresql-database.js';
import { grantRights, roleUrls } from './postgresql-roles.js';

export type { TestDatabase } from '../kit/test-database.js';

/** The engine of the current Jest project. */
export const engine: Engine = globalThis.petstoreTestEngine;

/** Defines tests that need several processes on one database. Defines nothing on the embedded engine. */
export function describeOnPostgresql(name: string, define: () => void): void {
  if (engine === 'postgresql') {
    describe(name, define);
  }
}

/** Defines nothing, as `test` and as `test.each`. */
const noTest = Object.assign(() => undefined, { each: () => () => undefined });

/** Defines a test whose result is the same on any engine: it runs on PostgreSQL. Defines nothing on the embedded engine. */
export const testOnce = engine === 'postgresql' ? test : (noTest as unknown as typeof test);

/** Creates a database with the current schema and no rows. */
export function createTestDatabase(): Promise<TestDatabase> {
  return engine === 'postgresql'
    ? createDatabase(`TEMPLATE ${handedOver('templateDatabase')}`)
    : copyDirectory('templateDirectory');
}

/** Copies a prepared directory: creating a cluster costs the embedded engine several seconds of CPU time. */
function copyDirectory(template: 'templateDirectory' | 'emptyTemplateDirectory'): Promise<TestDatabase> {
  return createDirectory((directory) => cp(handedOver(template), directory, { recursive: true }));
}

/**
 * Creates a database without a schema.
 *
 * @param withRights whether the service's role gets its rights in it, before there are tables
 */
export async function createEmptyTestDatabase(withRights = true): Promise<TestDatabase> {
  if (engine === 'embedded') return copyDirectory('emptyTemplateDirectory');
  const database = await createDatabase('');
  if (withRights) await grantServiceRights(database);
  return database;
}

/** Gives the service's role its rights in a schema of a database that was created without them. */
export function grantServiceRights({ settings }: TestDatabase, schema?: string): Promise<void> {
  const name = new URL(settings.DATABASE_URL ?? '').pathname.slice(1);
  return grantRights(handedOver('serverUrl'), handedOver('templateDatabase'), name, schema);
}

/** Runs a statement on PostgreSQL as a superuser, for operations that the owner may not perform either. */
export function administerTestDatabase({ settings }: TestDatabase, statement: string): Promise<void> {
  const name = new URL(settings.DATABASE_URL ?? '').pathname.slice(1);
  return administer(databaseUrl(handedOver('serverUrl'), name), statement);
}

async function createDatabase(options: string): Promise<TestDatabase> {
  const server = handedOver('serverUrl');
  const template = handedOver('templateDatabase');
  const name = `${template}_${randomBytes(4).toString('hex')}`;
  await administer(server, `CREATE DATABASE ${name} OWNER ${template}_owner ${options}`);
  const { serviceUrl, ownerUrl } = roleUrls(server, template, name);
  return {
    settings: { DATABASE_URL: serviceUrl },
    ownerSettings: { DATABASE_URL: ownerUrl },
    drop: () => administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}
