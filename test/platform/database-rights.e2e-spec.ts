import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Column, DataSource, Entity, getMetadataArgsStorage, PrimaryColumn } from 'typeorm';
import { ApiKeysService } from '#access';
import { Database, migrate, openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { ExpiredKeys } from '../../libs/resources/src/idempotency/idempotency-key.repository.js';
import { entitiesOf } from '../../libs/service/src/without-service.js';
import { AppModule } from '../../src/app.module.js';
import { PetEntity } from '../../src/pets/pet.entity.js';
import { seedPets } from '../../src/pets/pets.seed.js';
import { createTestApp, type TestApp } from '../support/app.js';
import {
  createEmptyTestDatabase,
  createTestDatabase,
  grantServiceRights,
  type TestDatabase,
} from '../support/database.js';
import { administer } from '../support/postgresql-database.js';

/*
 * All tests on PostgreSQL run the service as a role that owns nothing, with the rights that docs/operating.md grants.
 * These tests check the role itself, and the operations that no other test uses.
 */

const PET = { name: 'Rex', categoryId: 7 };

let app: TestApp;
beforeAll(async () => (app = await createTestApp({ settings: { MIGRATE_ON_START: 'true' } })));
afterAll(() => app.close());

/** Runs SQL as the service. */
function asService(text: string): Promise<unknown[][]> {
  return app.nest.get(Database).write({ name: '', text }, []);
}

test.each([
  'CREATE TABLE hole ()',
  `CREATE FUNCTION hole() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
  'CREATE SCHEMA hole',
  'CREATE ROLE hole',
  'CREATE INDEX hole ON pet (name)',
  'ALTER TABLE pet ADD hole int',
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
  await app.client.post('/v1/pets', PET, { headers: { 'idempotency-key': 'a-key' } });
  await app.sql(`UPDATE idempotency_key SET created_at = now() - interval '2 days'`);
  await app.nest.get(ExpiredKeys).remove();
  expect(await app.sql('SELECT FROM idempotency_key')).toEqual([]);
  await seedPets(app.nest.get(DataSource), 10, 10);
});

test('the rights are the same whether they are granted before or after migrate', async () => {
  const rights: unknown[] = [];
  for (const isBefore of [true, false]) {
    const database = await createEmptyTestDatabase(isBefore);
    const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
    await migrate(dataSource);
    if (!isBefore) await grantServiceRights(database);
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
  expect((await shop.client.post('/v1/pets', PET)).status).toBe(201);
  expect(await dataSource.query('SELECT name FROM shop.pet')).toEqual([{ name: 'Rex' }]);
  await shop.close();
  await dataSource.destroy();
  await created.drop();
});

/** Loaded, and no entity of the service: PostgreSQL has no such type. */
@Entity('test_elsewhere')
class ElsewhereEntity {
  @PrimaryColumn('int') id: number;
  @Column('datetime') at: Date;
}

test('migrate:status looks at the entities of the service, and at no other class', async () => {
  expect(getMetadataArgsStorage().tables.map(({ target }) => target)).toContain(ElsewhereEntity);
  expect(await entitiesOf(AppModule, readConfig({}))).toEqual([PetEntity]);
});

describe('a database in a state that would hide rows or fail requests', () => {
  let database: TestDatabase;
  const started: TestApp[] = [];
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    for (const each of started.splice(0)) await each.close();
    await database.drop();
  });

  /** Starts a service, which runs until the test ends. */
  async function start(): Promise<TestApp> {
    const app = await createTestApp({ database });
    started.push(app);
    return app;
  }

  const asOwner = (text: string): Promise<void> => administer(database.ownerSettings.DATABASE_URL ?? '', text);
  const warningsOf = ({ log }: TestApp): string[] => log.lines.flatMap(({ level, msg }) => (level === 40 ? msg : []));
  const ready = async ({ client }: TestApp): Promise<unknown> => {
    const { status, json } = await client.get('/health/ready', { apiKey: null });
    return [status, json];
  };

  const WARNED = [200, { status: 'ok', warnings: 1 }];

  /** The SQL that a text advises. */
  const adviceOf = (text: unknown): string => / run(?: as the owner)?: (.+)\.$/.exec(String(text))?.[1] ?? '';

  /** Starts a service that must refuse, does what it advises, and starts it again. */
  async function startByAdvice(refusal: RegExp): Promise<TestApp> {
    const fault = await start().catch((error: Error) => error.message);
    expect(fault).toMatch(refusal);
    await asOwner(adviceOf(fault));
    const mended = await start();
    expect(warningsOf(mended)).toEqual([]);
    return mended;
  }

  test.each(['schema_migration', 'client', 'api_key', 'key_usage', 'idempotency_key'])(
    'row level security on %s of the platform stops the start, and makes readiness 503, also with a policy that lets all pass',
    async (table) => {
      const running = await start();
      await asOwner(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY; CREATE POLICY test ON ${table} USING (true)`);
      const remedy = `As their owner, run: ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY.`;
      const message = `Row level security may hide rows from the service in ${table}. ${remedy}`;
      expect(await ready(running)).toEqual([503, { code: 'unavailable', status: 503, message }]);
      await startByAdvice(/^Row level security may hide rows/);
    },
  );

  test('row level security on a table of a module is one warning, at the start or when readiness finds it', async () => {
    const running = await start();
    let now = performance.now();
    const clock = import.meta.jest.spyOn(performance, 'now').mockImplementation(() => (now += 1_000));
    expect(await ready(running)).toEqual([200, { status: 'ok' }]);
    await asOwner('ALTER TABLE pet ENABLE ROW LEVEL SECURITY');
    for (let round = 0; round < 2; round++) expect(await ready(running)).toEqual(WARNED);
    clock.mockRestore();
    const sentence = /^Row level security may hide rows from the service in pet\. If that is not/;
    const warning = [expect.stringMatching(sentence)];
    expect(warningsOf(running)).toEqual(warning);
    const other = await start();
    expect([warningsOf(other), await ready(other)]).toEqual([warning, WARNED]);
  });

  test('migrate warns of row level security that the database has switched on', async () => {
    await asOwner('ALTER TABLE pet ENABLE ROW LEVEL SECURITY; ALTER TABLE client ENABLE ROW LEVEL SECURITY');
    const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
    const lines: string[] = [];
    expect(await migrate(dataSource, (line) => lines.push(line))).toEqual([]);
    await dataSource.destroy();
    expect(lines).toEqual([expect.stringMatching(/^Row level security is on for (pet, client|client, pet)\. /)]);
  });

  test.each(['INSERT, DELETE ON idempotency_key', 'SELECT ON schema_migration'])(
    'without %s the start fails with the GRANT that mends it',
    async (right) => {
      const { username } = new URL(database.settings.DATABASE_URL ?? '');
      await asOwner(`REVOKE ${right} FROM ${username}`);
      const refusal = `^The role of the service lacks rights\\. As the owner, run: GRANT ${right} TO `;
      await startByAdvice(new RegExp(refusal));
    },
  );

  test('missing rights on table and sequence of a module are one warning with the GRANTs that mend them', async () => {
    const { username } = new URL(database.settings.DATABASE_URL ?? '');
    await asOwner(
      `REVOKE INSERT, UPDATE ON pet FROM ${username}; REVOKE USAGE ON SEQUENCE pet_id_seq FROM ${username}`,
    );
    const warned = await start();
    const [warning, ...others] = warningsOf(warned);
    const grants = `GRANT INSERT, UPDATE ON pet TO ${username}; GRANT USAGE ON SEQUENCE pet_id_seq TO ${username}`;
    expect([adviceOf(warning), others, await ready(warned)]).toEqual([grants, [], WARNED]);
    await asOwner(grants);
    await nextIds();
  });

  test('an id that has lost its identity stops the start, unless a default gives ids; first comes a missing migration', async () => {
    await asOwner(
      `INSERT INTO pet (name, category_id) VALUES ('Rex', 7), ('Rex', 7); ALTER TABLE pet ALTER id DROP IDENTITY`,
    );
    const mended = await startByAdvice(/^Column id of pet generates no ids, because /);
    expect((await mended.client.post('/v1/pets', PET)).json).toMatchObject({ id: 3 });
    await asOwner(`ALTER TABLE pet ALTER id DROP IDENTITY; CREATE SEQUENCE test_ids START 10;
      ALTER TABLE pet ALTER id SET DEFAULT nextval('test_ids')`);
    await start();
    await asOwner(
      `ALTER TABLE pet ALTER id DROP DEFAULT; DELETE FROM schema_migration WHERE name LIKE 'CompareClient%'`,
    );
    await expect(start()).rejects.toThrow('it lacks CompareClientNamesAsBytes1795824060000');
  });

  test('a sequence behind the largest id is a warning with the setval that mends it, and never takes a restart back', async () => {
    await asOwner(
      `INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE VALUES (-5, 'Rex', 7), (4711, 'Rex', 7)`,
    );
    const warned = await start();
    const [warning, ...others] = warningsOf(warned);
    expect(warning).toMatch(/^Sequence pet_id_seq is behind the ids of pet, /);
    expect([others, await ready(warned)]).toEqual([[], WARNED]);
    await asOwner(`ALTER TABLE pet ALTER id RESTART WITH 5000; ${adviceOf(warning)}`);
    expect(await nextIds()).toEqual([5000]);
    await asOwner(`ALTER TABLE pet ALTER id RESTART WITH 2; ${adviceOf(warning)}`);
    expect(await nextIds()).toEqual([5001]);
  });

  /** The id of a new pet, of a service that warns of nothing once a pet was made. */
  async function nextIds(): Promise<unknown[]> {
    const first = await start();
    // Only creates with a key use the sequence themselves.
    const options = { headers: { 'idempotency-key': randomUUID() } };
    const { json } = await first.client.post('/v1/pets', PET, options);
    const second = await start();
    expect([warningsOf(second), await ready(second)]).toEqual([[], [200, { status: 'ok' }]]);
    return [(json as { id: number }).id];
  }
});
