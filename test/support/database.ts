import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Engine, handedOver } from './engines.js';
import { administer, databaseUrl } from './postgresql-database.js';

/** A database of one test file's own. */
export interface TestDatabase {
  /** Settings that lead to it, for `readConfig` or the environment of a child process. */
  readonly settings: Readonly<Record<string, string>>;
  /** Removes it, whoever is connected. The embedded one must not be open. */
  drop(): Promise<void>;
}

/** The engine that the tests run on at the moment. */
export const engine: Engine = globalThis.petstoreTestEngine;

/** Groups tests that need several processes on one database. The embedded engine has one, so there are none of them. */
export function describeOnPostgresql(name: string, define: () => void): void {
  if (engine === 'postgresql') {
    describe(name, define);
  }
}

/** Makes a database with the current schema and nothing in it. */
export function createTestDatabase(): Promise<TestDatabase> {
  return engine === 'postgresql'
    ? createDatabase(`TEMPLATE ${handedOver('templateDatabase')}`)
    : createDirectory((directory) => cp(handedOver('templateDirectory'), directory, { recursive: true }));
}

/** Makes a database without a schema; on the embedded engine a directory where it will be made. */
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
