import pg from 'pg';
import { PET_STORE } from '../../src/app.description.js';
import { migrateDatabase } from '../kit/test-database.js';
import { databaseUrl } from './postgresql-database.js';
import { createDatabaseWithRoles } from './postgresql-roles.js';
import { type PostgresqlServer, startPostgresqlServer } from './postgresql-server.js';
import type { PetRow } from './witness.js';

/** Makes a migrated database with the roles of `docs/operating.md`, and returns its URI as the service's role. */
export async function createOwnDatabase(server: { readonly url: string }, name: string): Promise<string> {
  const { ownerUrl, serviceUrl } = await createDatabaseWithRoles(server.url, name);
  await migrateDatabase(PET_STORE, { DATABASE_URL: ownerUrl });
  return serviceUrl;
}

/** A PostgreSQL server of a test file, with the migrated database `petstore`. */
export interface OwnServer {
  readonly server: PostgresqlServer;
  /** URI of the database as the service's role. */
  readonly url: string;
  /** URI of the database as superuser. */
  readonly superUrl: string;
}

/** Starts a server before the tests of a file and stops it after them; until then the members are undefined. */
export function useOwnServer(overrides?: Record<string, string>): OwnServer {
  const own = {} as OwnServer;
  beforeAll(async () => {
    const server = await startPostgresqlServer(overrides);
    Object.assign(own, { server, superUrl: databaseUrl(server.url, 'petstore') });
    Object.assign(own, { url: await createOwnDatabase(server, 'petstore') });
  }, 60_000);
  afterAll(() => own.server?.stop());
  return own;
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

/** The pets whose names start with `prefix` and a hyphen. */
export function petsOf(url: string, prefix: string): Promise<PetRow[]> {
  return rowsOf<[string, string, string, string]>(
    url,
    `SELECT id::text, name, category_id::text, status::text FROM pet WHERE name LIKE '${prefix}-%'`,
  );
}
