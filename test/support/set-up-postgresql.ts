import { randomBytes } from 'node:crypto';
import { atTearDown, HANDED_OVER } from './engines.js';
import { createOwnDatabase, rowsOf } from './own-database.js';
import { administer } from './postgresql-database.js';
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
  await createOwnDatabase({ url: server }, template);
}

/** Drops all databases of the roles, also those left over from a failed test, and then the roles. */
async function removeAll(server: string, template: string): Promise<void> {
  const list = `SELECT datname FROM pg_database WHERE starts_with(datname, '${template}')`;
  for (const [name] of await rowsOf<[string]>(server, list))
    await administer(server, `DROP DATABASE ${name} WITH (FORCE)`);
  await administer(server, `DROP ROLE IF EXISTS ${template}_owner, ${template}_service`);
}

async function takeServer(): Promise<string> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return given;
  const { url, stop } = await startPostgresqlServer();
  atTearDown(stop);
  return url;
}
