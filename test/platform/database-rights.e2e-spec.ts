import { readFile } from 'node:fs/promises';
import { DataSource } from 'typeorm';
import { ApiKeysService } from '#access';
import { Database, migrate, openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { ExpiredKeys } from '../../libs/resources/src/idempotency/idempotency-key.repository.js';
import { seedPets } from '../../src/pets/pets.seed.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createEmptyTestDatabase, grantServiceRights } from '../support/database.js';

/*
 * All tests on PostgreSQL run the service as a role that owns nothing, with the rights that docs/operating.md grants.
 * These tests check the role itself, and the operations that no other test uses.
 */

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ settings: { MIGRATE_ON_START: 'true' } });
});
afterAll(() => app.close());

/** Runs SQL as the service. */
function asService(text: string): Promise<unknown[][]> {
  return app.nest.get(Database).write({ name: '', text }, []);
}

test.each([
  'CREATE TABLE hole ()',
  'CREATE TYPE hole AS ENUM ()',
  `CREATE FUNCTION hole() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
  'CREATE SCHEMA hole',
  'CREATE DATABASE hole',
  'CREATE ROLE hole',
  'CREATE TRIGGER hole BEFORE INSERT ON pet FOR EACH ROW EXECUTE FUNCTION notify_api_key_change()',
  'CREATE INDEX hole ON pet (name)',
  'ALTER TABLE pet ADD hole int',
  'DROP TABLE pet',
  'TRUNCATE pet',
])('the role of the service cannot %s', async (change) => {
  await expect(asService(change)).rejects.toMatchObject({ code: '42501' });
});

test('the role of the service cannot declare migrations after the REVOKE of operating.md, which no test below misses', async () => {
  const page = await readFile(new URL('../../docs/operating.md', import.meta.url), 'utf8');
  const [, revoke = ''] = /`(REVOKE [^`]+)`/.exec(page) ?? [];
  const [[role]] = (await asService('SELECT current_user')) as [[string]];
  await app.sql(revoke.replace('petstore_service', role));
  await expect(asService('DELETE FROM schema_migration')).rejects.toMatchObject({ code: '42501' });
  expect((await app.client.get('/health/ready')).status).toBe(200);
});

test('the role of the service can run the commands and the background work', async () => {
  const keys = app.nest.get(ApiKeysService);
  const { key } = await keys.create({ client: 'other' });
  const rotated = await keys.rotate(String(key.id), 0);
  await keys.revoke(String(rotated.key.id), 'test');
  expect((await keys.list({})).length).toBeGreaterThan(1);
  await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 }, { headers: { 'idempotency-key': 'a-key' } });
  await app.sql(`UPDATE idempotency_key SET created_at = now() - interval '2 days'`);
  await app.nest.get(ExpiredKeys).remove();
  expect(await app.sql('SELECT FROM idempotency_key')).toEqual([]);
  await seedPets(app.nest.get(DataSource), 10, 10);
});

test('the rights are the same whether they are granted before or after migrate', async () => {
  const databases = [await createEmptyTestDatabase(), await createEmptyTestDatabase(false)] as const;
  const rights: unknown[] = [];
  for (const database of databases) {
    const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
    await migrate(dataSource);
    if (database === databases[1]) await grantServiceRights(database);
    rights.push(
      await dataSource.query(`SELECT relname, relacl::text[] FROM pg_class
        WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace ORDER BY relname`),
    );
    await dataSource.destroy();
    await database.drop();
  }
  expect(rights[1]).toEqual(rights[0]);
  expect(JSON.stringify(rights)).toMatch(/_service=/);
});

test('with another search_path migrate makes the tables in its first schema, where the service needs the same rights', async () => {
  const created = await createEmptyTestDatabase(false);
  const inShop = ({ DATABASE_URL = '' }: Record<string, string | undefined>): Record<string, string> => ({
    DATABASE_URL: `${DATABASE_URL}?options=-c%20search_path%3Dshop`,
  });
  const database = { ...created, settings: inShop(created.settings), ownerSettings: inShop(created.ownerSettings) };
  const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
  await dataSource.query('CREATE SCHEMA shop');
  await grantServiceRights(created, 'shop');
  await migrate(dataSource);
  const shop = await createTestApp({ database });
  expect((await shop.client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).status).toBe(201);
  expect(await dataSource.query('SELECT name FROM shop.pet')).toEqual([{ name: 'Rex' }]);
  await shop.close();
  await dataSource.destroy();
  await created.drop();
});
