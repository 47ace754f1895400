import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { migrate } from '../../src/platform/database/schema/migrate.js';
import { atTearDown, HANDED_OVER } from './engines.js';
import { createDatabaseWithRoles } from './postgresql-roles.js';
import { startPostgresqlServer } from './postgresql-server.js';

/**
 * Starts PostgreSQL, and creates the roles of owner and service and a migrated database, which each test file clones.
 * `TEST_DATABASE_URL` names a running server to use instead, as a superuser.
 */
export async function setUp(): Promise<void> {
  const server = await takeServer();
  const template = `petstore_test_${randomBytes(4).toString('hex')}`;
  process.env[HANDED_OVER.serverUrl] = server;
  process.env[HANDED_OVER.templateDatabase] = template;

  atTearDown(() => removeAll(server, template));
  const { ownerUrl } = await createDatabaseWithRoles(server, template);
  const dataSource = await openDatabase(readConfig({ DATABASE_URL: ownerUrl }));
  await migrate(dataSource);
  await dataSource.destroy();
}

/** Drops all databases of the roles, also those left over from a failed test, and then the roles. */
async function removeAll(server: string, template: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>(
      'SELECT datname FROM pg_database WHERE starts_with(datname, $1)',
      [template],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE ${datname} WITH (FORCE)`);
    await client.query(`DROP ROLE IF EXISTS ${template}_owner, ${template}_service`);
  } finally {
    await client.end();
  }
}

async function takeServer(): Promise<string> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return given;
  const { url, stop } = await startPostgresqlServer();
  atTearDown(stop);
  return url;
}
