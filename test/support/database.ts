import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Engine, handedOver } from './engines.js';
import { administer, databaseUrl } from './postgresql-database.js';

/** A database for one test file. */
export interface TestDatabase {
  /** Settings that select the database, for `readConfig` or as environment variables of a child process. */
  readonly settings: Readonly<Record<string, string>>;
  /** Drops the database, even while clients are connected. An embedded database must be closed first. */
  drop(): Promise<void>;
}

/** The engine of the current Jest project. */
export const engine: Engine = globalThis.petstoreTestEngine;

/** Defines tests that need several processes on one database. Defines nothing on the embedded engine. */
export function describeOnPostgresql(name: string, define: () => void): void {
  if (engine === 'postgresql') {
    describe(name, define);
  }
}

/** Creates a database with the current schema and no rows. */
export function createTestDatabase(): Promise<TestDatabase> {
  return engine === 'postgresql'
    ? createDatabase(`TEMPLATE ${handedOver('templateDatabase')}`)
    : createDirectory((directory) => cp(handedOver('templateDirectory'), directory, { recursive: true }));
}

/** Creates a database without a schema; for the embedded engine, an empty directory. */
export function createEmptyTestDatabase(): Promise<TestDatabase> {
  return engine === 'postgresql' ? createDatabase('') : createDirectory(() => Promise.resolve());
}

async function createDatabase(options: string): Promise<TestDatabase> {
  const server = handedOver('serverUrl');
  const name = `${handedOver('templateDatabase')}_${randomBytes(4).toString('hex')}`;
  await administer(server, `CREATE DATABASE ${name} ${options}`);
  return {
    settings: { DATABASE_URL: databaseUrl(server, name) },
    drop: () => administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function createDirectory(fill: (directory: string) => Promise<void>): Promise<TestDatabase> {
  const directory = await mkdtemp(join(tmpdir(), 'petstore-test-'));
  await fill(directory);
  return {
    settings: { DATA_DIR: directory },
    drop: () => rm(directory, { recursive: true, force: true }),
  };
}
