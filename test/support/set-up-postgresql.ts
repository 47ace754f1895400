import { randomBytes } from 'node:crypto';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { migrate } from '../../src/platform/database/schema/migrate.js';
import { atTearDown, HANDED_OVER } from './engines.js';
import { administer, databaseUrl } from './postgresql-database.js';
import { startPostgresqlServer } from './postgresql-server.js';

/**
 * Starts PostgreSQL and makes a migrated database there, which each test file clones. `TEST_DATABASE_URL` names a
 * running server to use instead, as a role that may create databases.
 */
export async function setUp(): Promise<void> {
  const server = await takeServer();
  const template = `petstore_test_${randomBytes(4).toString('hex')}`;
  process.env[HANDED_OVER.serverUrl] = server;
  process.env[HANDED_OVER.templateDatabase] = template;

  await administer(server, `CREATE DATABASE ${template}`);
  atTearDown(() => administer(server, `DROP DATABASE IF EXISTS ${template} WITH (FORCE)`));
  const dataSource = await openDatabase(readConfig({ DATABASE_URL: databaseUrl(server, template) }));
  await migrate(dataSource);
  await dataSource.destroy();
}

async function takeServer(): Promise<string> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return given;
  const { url, stop } = await startPostgresqlServer();
  atTearDown(stop);
  return url;
}
