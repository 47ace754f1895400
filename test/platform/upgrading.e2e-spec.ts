import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { DataSource } from 'typeorm';
import { migrate, type Migration, openDatabase, revertLastMigration } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, engine, type TestDatabase } from '../support/database.js';

/*
 * Runs the example of migrations/README.md unchanged, while a version that knows none of its migrations serves requests.
 */

const PAGE = readFileSync(new URL('../../migrations/README.md', import.meta.url), 'utf8');

/** The migrations of the page, oldest first. */
async function migrationsOfPage(): Promise<Migration[]> {
  const blocks = [...PAGE.matchAll(/```ts\n(export class \w+ implements MigrationInterface [^]*?)```/g)];
  const migrations = blocks.map(async ([, code = '']) => {
    const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.ESNext } });
    const url = `data:text/javascript,${encodeURIComponent(outputText)}`;
    const exported = Object.values((await import(url)) as Record<string, new () => Migration>);
    return new (exported[0] as new () => Migration)();
  });
  return Promise.all(migrations);
}

/** The statements of the page that represent further migrations. */
function constraintSql(): string[] {
  const [, sql = ''] = /```sql\n(-- in one migration\n[^]*?)```/.exec(PAGE) ?? [];
  return sql.split(';').filter((statement) => statement.trim() !== '');
}

/** Enough rows for three batches of the backfill. */
const PETS = 12_000;

let database: TestDatabase;
let app: TestApp;
let dataSource: DataSource | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  app = await createTestApp({ database });
});
afterAll(async () => {
  await app.close();
  await dataSource?.destroy();
  await database.drop();
});

/** An operator's connection. The embedded engine has a single process, so there it is the service's connection. */
async function operator(): Promise<DataSource> {
  if (engine === 'embedded') return app.nest.get(DataSource);
  return (dataSource ??= await openDatabase(readConfig(database.ownerSettings), MIGRATIONS));
}

/** Expects that the old version is ready and serves requests. */
async function expectServed(step: string): Promise<void> {
  const created = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
  const listed = await app.client.get('/v1/pets?limit=100');
  const ready = await app.client.get('/health/ready', { apiKey: null });
  expect([step, created.status, listed.status, ready.status]).toEqual([step, 201, 200, 200]);
}

test('each migration of the page can run twice, and the old version serves requests at every step', async () => {
  const migrations = await migrationsOfPage();
  const names = migrations.map(({ constructor }) => constructor.name);
  expect(names.map((name) => name.slice(0, -13))).toEqual([
    'AddPetNote',
    'IndexPetNote',
    'AddPetRemark',
    'FillPetRemark',
    'DropPetNote',
  ]);
  const opened = await operator();
  const known = opened.migrations.length;
  /** Applies a migration as a newer version does; afterwards the old version does not know it. */
  const apply = async (migration: Migration): Promise<void> => {
    opened.migrations.push(migration);
    expect(await migrate(opened)).toEqual([migration.constructor.name]);
    opened.migrations.splice(known);
    await expectServed(migration.constructor.name);
  };
  type All = [add: Migration, index: Migration, remark: Migration, fill: Migration, drop: Migration];
  const [addNote, indexNote, addRemark, fillRemark, dropNote] = migrations as All;
  await apply(addNote);
  await app.sql(
    `INSERT INTO pet (name, category_id, note) SELECT 'Rex', n, CASE WHEN n % 2 = 0 THEN 'note ' || n END
    FROM generate_series(1, ${PETS}) AS n`,
  );
  await apply(indexNote);
  await apply(addRemark);
  // After an interrupted run some rows already have a remark, and must keep it.
  await app.sql(`UPDATE pet SET remark = 'kept' WHERE category_id = 10`);
  await apply(fillRemark);
  expect(
    await app.sql(
      `SELECT count(*)::int, count(remark)::int, count(*) FILTER (WHERE remark = 'note ' || category_id)::int,
        count(*) FILTER (WHERE remark = 'kept')::int FROM pet WHERE category_id <> 7`,
    ),
  ).toEqual([[PETS - 1, PETS - 1, PETS / 2 - 1, 1]]);
  await app.sql(`DELETE FROM schema_migration WHERE name LIKE 'FillPetRemark%'`);
  await apply(fillRemark);

  // The newer release gives each new pet a remark; in this test a default of the column does.
  await app.sql(`ALTER TABLE pet ALTER remark SET DEFAULT ''`);
  await app.sql(`UPDATE pet SET remark = '' WHERE remark IS NULL`);
  for (const statement of constraintSql()) await app.sql(statement);
  await expectServed('the constraint');
  const inserted = app.sql(`INSERT INTO pet (name, category_id, remark) VALUES ('Rex', 7, NULL)`);
  await expect(inserted).rejects.toMatchObject({ code: '23502' });
  await apply(dropNote);

  await app.sql('ALTER TABLE pet ALTER remark DROP NOT NULL');
  for (const migration of [...migrations].reverse()) {
    opened.migrations.push(migration);
    expect(await revertLastMigration(opened)).toBe(migration.constructor.name);
    opened.migrations.splice(known);
    await expectServed(`without ${migration.constructor.name}`);
  }
}, 120_000);
