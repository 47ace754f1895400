import pg from 'pg';
import { readConfig } from '../../../src/config.js';
import { openDatabase } from '../../../src/platform/database/data-source.js';
import { migrate } from '../../../src/platform/database/schema/migrate.js';
import { administer } from '../../support/postgresql-database.js';
import type { PostgresqlServer } from '../../support/postgresql-server.js';
import type { PetRow } from './witness.js';

/** Makes a migrated database, owned by a role without privileges, and returns its URI. */
export async function createOwnDatabase(server: PostgresqlServer, name: string): Promise<string> {
  await administer(server.url, `CREATE ROLE ${name} LOGIN PASSWORD '${name}'`);
  await administer(server.url, `CREATE DATABASE ${name} OWNER ${name}`);
  const url = new URL(server.url);
  Object.assign(url, { username: name, password: name, pathname: `/${name}` });
  const dataSource = await openDatabase(readConfig({ DATABASE_URL: url.href }));
  await migrate(dataSource);
  await dataSource.destroy();
  return url.href;
}

/** Runs a statement on a new connection; each row is an array of columns. */
export async function rowsOf<Row extends unknown[]>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'test' });
  await client.connect();
  try {
    return (await client.query<Row>({ text, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

/** The animals whose names start with `prefix` and a hyphen. */
export function petsOf(url: string, prefix: string): Promise<PetRow[]> {
  return rowsOf<[string, string, string, string]>(
    url,
    `SELECT id::text, name, category_id::text, status::text FROM pet WHERE name LIKE '${prefix}-%'`,
  );
}
