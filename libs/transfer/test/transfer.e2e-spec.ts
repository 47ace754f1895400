import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { migrate, openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../../../test/support/config.js';
import { exportDatabase } from '../src/export.js';
import { importDatabase } from '../src/import.js';
import { PET_STORE } from '../../../src/app.description.js';
import { createTestApp } from '../../../test/support/app.js';
import { HOSTILE, setDefaults } from '../../../test/support/hostile-settings.js';
import {
  administerTestDatabase,
  createTestDatabase,
  engine,
  type TestDatabase,
} from '../../../test/support/database.js';

/*
 * Exports and imports between two databases of the engine. The commands are tested in transfer-commands.
 */

import.meta.jest.setTimeout(60_000);

const SERVICE = { ...PET_STORE, release: '1.0.0' };

/** Tables of a feature, with all kinds of columns and constraints. */
const FEATURE = [
  `CREATE DOMAIN test_colour AS text CHECK (value <> 'none')`,
  `CREATE TABLE test_visit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent_id bigint CONSTRAINT fk_visit_parent REFERENCES test_visit,
    name text NOT NULL, upper_name text GENERATED ALWAYS AS (upper(name)) STORED,
    place int UNIQUE DEFERRABLE INITIALLY DEFERRED, gone text)`,
  `ALTER TABLE test_visit DROP gone`,
  `CREATE TABLE "Odd ""Name""" ("a b" char(5), "select" json, doc jsonb, f float8[], n numeric, i interval, d date,
    raw bytea, at timestamptz, b bool, c test_colour)`,
  `CREATE TABLE test_measured (day date NOT NULL, value float8, id bigint GENERATED ALWAYS AS IDENTITY) PARTITION BY RANGE (day)`,
  `CREATE TABLE test_measured_2026 PARTITION OF test_measured FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')`,
  `CREATE TABLE test_measured_rest PARTITION OF test_measured DEFAULT`,
  `CREATE TABLE test_left_side (id int PRIMARY KEY, right_id int)`,
  `CREATE TABLE test_right_side (id int PRIMARY KEY, left_id int CONSTRAINT fk_left REFERENCES test_left_side)`,
  `ALTER TABLE test_left_side ADD CONSTRAINT fk_right FOREIGN KEY (right_id) REFERENCES test_right_side ON DELETE CASCADE`,
  `CREATE TABLE test_base (a int)`,
  `CREATE TABLE test_derived (b text) INHERITS (test_base)`,
  `CREATE SCHEMA test_other; CREATE TABLE test_other."Bill" (id serial PRIMARY KEY, total numeric)`,
  `CREATE SEQUENCE test_invoice_number START 100 INCREMENT 5`,
  `CREATE SEQUENCE test_drawn`,
  `CREATE TABLE test_audit (what text)`,
  `CREATE FUNCTION note_visit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO test_audit VALUES (TG_NAME || ' ' || TG_OP); RETURN NULL; END $$`,
  `CREATE TRIGGER tr_visit AFTER INSERT OR TRUNCATE ON test_visit EXECUTE FUNCTION note_visit()`,
  `CREATE TRIGGER tr_always AFTER INSERT ON test_visit EXECUTE FUNCTION note_visit()`,
  `CREATE TRIGGER tr_off AFTER INSERT ON test_visit EXECUTE FUNCTION note_visit()`,
  `ALTER TABLE test_visit ENABLE ALWAYS TRIGGER tr_always`,
  `ALTER TABLE test_visit DISABLE TRIGGER tr_off`,
];

const ROWS = [
  `INSERT INTO pet (id, name, category_id, status) OVERRIDING SYSTEM VALUE VALUES
    (-9223372036854775808, E'tab\\tline\\nreturn\\rback\\\\slash \\\\N \\\\.', 9223372036854775807, 'sold'),
    (9223372036854775806, '\\.', -9223372036854775808, 'pending'), (-1, '\\N', 0, 'available'),
    (-2, E'\\b\\f\\v\\x01 \\u00e9\\u2028\\U0001F436"''', 1, 'sold')`,
  `INSERT INTO pet (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, 3000) n`,
  `DELETE FROM pet WHERE id BETWEEN 2990 AND 3000`,
  `INSERT INTO client (name) VALUES ('shop')`,
  `INSERT INTO api_key (client_id, prefix, hash, scopes, created_at, expires_at)
    SELECT id, 'pets_Shop000', sha256('old'), '{pets:read}', '2026-01-02 03:04:05.678901Z', 'infinity' FROM client`,
  `INSERT INTO key_usage SELECT id, 'getPet', '2026-11-20', 9223372036854775807, '2026-11-20 01:02:03.000001Z', 'a "b"' FROM api_key`,
  `INSERT INTO test_visit (parent_id, name, place) OVERRIDING SYSTEM VALUE VALUES (2, 'child before its parent', 2), (NULL, '', 1)`,
  `INSERT INTO "Odd ""Name""" VALUES
    ('ab', '{"b":1,  "a":1.0e5,"a":2}', '{"z":123456789012345678901234567890.5}', '{0.30000000000000004,NaN,Infinity,NULL,1e-300}',
      12345678901234567890.123456789, '1 year -2 days 03:04:05.000006', '0044-03-15 BC', '\\x00ff0a5c',
      '1883-11-18 12:03:58.000001-07', true, 'red'),
    (NULL, NULL, NULL, '{}', 'NaN', NULL, 'infinity', '', '-infinity', false, '')`,
  `INSERT INTO test_measured VALUES ('2026-05-05', 0.1), ('1999-01-01', 3)`,
  `INSERT INTO test_left_side VALUES (1, NULL); INSERT INTO test_right_side VALUES (2, 1); UPDATE test_left_side SET right_id = 2`,
  `INSERT INTO test_base VALUES (1); INSERT INTO test_derived VALUES (2, 'two')`,
  `INSERT INTO test_other."Bill" (total) VALUES (1.5), (2.50)`,
  `SELECT nextval('test_drawn'), nextval('test_drawn')`,
];

const TABLES = `
  SELECT oid::regclass::text AS name FROM pg_class
  WHERE relnamespace IN ('public'::regnamespace, to_regnamespace('test_other')) AND relkind IN ('r', 'p') AND relname <> 'schema_migration' ORDER BY 1`;

const databases: TestDatabase[] = [];
const opened: DataSource[] = [];
let source: DataSource;
let target: DataSource;
let targetDatabase: TestDatabase;
let sourceDatabase: TestDatabase;

async function makeDatabase(): Promise<[TestDatabase, DataSource]> {
  const database = await createTestDatabase();
  databases.push(database);
  const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
  opened.push(dataSource);
  return [database, dataSource];
}

beforeAll(async () => {
  [sourceDatabase, source] = await makeDatabase();
  [targetDatabase, target] = await makeDatabase();
  for (const statement of FEATURE) {
    await source.query(statement);
    await target.query(statement);
  }
  for (const statement of ROWS) await source.query(statement);
});
afterAll(async () => {
  for (const dataSource of opened) await dataSource.destroy();
  for (const database of databases) await database.drop();
});

async function exported(dataSource: DataSource): Promise<Buffer> {
  const pieces: string[] = [];
  await exportDatabase(dataSource, SERVICE, false, (text) => Promise.resolve(void pieces.push(text)));
  return Buffer.from(pieces.join(''));
}

async function* stream(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += 10_000) {
    await Promise.resolve();
    yield bytes.subarray(start, start + 10_000);
  }
}

const imported = (dataSource: DataSource, bytes: Buffer): Promise<unknown> =>
  importDatabase(dataSource, 'petstore', stream(bytes));

async function emptyTarget(): Promise<void> {
  const tables = await target.query<{ name: string }[]>(TABLES);
  await target.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}`);
  // A trigger has written into it.
  await target.query('TRUNCATE test_audit');
}

/** Every row as PostgreSQL prints it, the foreign keys and triggers, which an import removes temporarily, and the sequences. */
async function everythingIn(dataSource: DataSource): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const { name } of await dataSource.query<{ name: string }[]>(TABLES)) {
    found[name] = await dataSource.query(`SELECT t::text AS row FROM ONLY ${name} t ORDER BY 1`);
  }
  found.foreignKeys = await dataSource.query(
    `SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint
    WHERE contype = 'f' ORDER BY 1, 2`,
  );
  found.triggers = await dataSource.query(
    `SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2`,
  );
  found.sequences = await dataSource.query(`SELECT sequencename, last_value FROM pg_sequences ORDER BY 1`);
  return found;
}

async function refusalOf(bytes: Buffer): Promise<string> {
  return imported(target, bytes).then(
    () => 'It was imported.',
    (error: Error) => error.message,
  );
}

test('an imported database equals the exported one, with tables of every kind', async () => {
  const bytes = await exported(source);
  expect(await imported(target, bytes)).toBe(3010);
  const before = await everythingIn(source);
  expect(await everythingIn(target)).toEqual(before);
  expect((before.triggers as unknown[]).length).toBeGreaterThan(3);
  // The planner knows the new rows.
  expect(await target.query(`SELECT reltuples::int AS rows FROM pg_class WHERE relname = 'pet'`)).toEqual([
    { rows: 2993 },
  ]);
  for (const next of [
    `INSERT INTO pet (name, category_id) VALUES ('next', 1) RETURNING id`,
    `INSERT INTO test_visit (name) VALUES ('next') RETURNING id`,
    `INSERT INTO test_measured VALUES ('2026-06-06') RETURNING id`,
    `SELECT nextval('test_invoice_number')`,
    `SELECT nextval('test_drawn')`,
    `SELECT count(*) FROM test_audit`,
  ]) {
    expect([next, await target.query(next)]).toEqual([next, await source.query(next)]);
  }
});

if (engine === 'postgresql') {
  const body = (bytes: Buffer): string => bytes.toString().split('\n').slice(1, -2).join('\n');

  test('the texts of an export do not depend on the settings of the session', async () => {
    const { DATABASE_URL } = sourceDatabase.ownerSettings;
    const options =
      '-c datestyle=German -c intervalstyle=iso_8601 -c quote_all_identifiers=on -c standard_conforming_strings=off -c timezone=Asia/Tokyo -c extra_float_digits=0 -c bytea_output=escape';
    const url = `${DATABASE_URL}?options=${encodeURIComponent(options)}`;
    const other = await openDatabase(readConfig({ ...sourceDatabase.ownerSettings, DATABASE_URL: url }), MIGRATIONS);
    expect(await other.query('SHOW intervalstyle')).toEqual([{ IntervalStyle: 'iso_8601' }]);
    expect(body(await exported(other))).toEqual(body(await exported(source)));
    await other.destroy();
  });

  test('the texts of an export do not depend on the collation of the database, nor does an import on settings of XML', async () => {
    const url = new URL(sourceDatabase.ownerSettings.DATABASE_URL ?? '');
    const name = `${url.pathname.slice(1)}_turkish`;
    const collation = `LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C'`;
    await administerTestDatabase(
      sourceDatabase,
      `CREATE DATABASE ${name} ENCODING 'UTF8' ${collation} OWNER ${url.username} TEMPLATE template0`,
    );
    url.pathname = `/${name}`;
    url.search = `?options=${encodeURIComponent('-c intervalstyle=sql_standard -c xmloption=document')}`;
    const turkish = await openDatabase(readConfig({ DATABASE_URL: url.href }), MIGRATIONS);
    try {
      await migrate(turkish);
      await turkish.query(`CREATE TABLE test_kept (span interval, doc xml)`);
      await turkish.query(`INSERT INTO test_kept VALUES ('-1 days -02:00:00', XMLPARSE(CONTENT 'a<b/>'))`);
      const bytes = await exported(turkish);
      expect(bytes.toString()).toContain('\n-1 days -02:00:00\ta<b/>\n');
      await turkish.query('TRUNCATE test_kept');
      await imported(turkish, bytes);
      expect(await turkish.query(`SELECT extract(hour FROM span)::int AS hours, doc::text FROM test_kept`)).toEqual([
        { hours: -2, doc: 'a<b/>' },
      ]);
    } finally {
      await turkish.destroy();
      await administerTestDatabase(sourceDatabase, `DROP DATABASE ${name} WITH (FORCE)`);
    }
  });

  test('export needs only the rights of the service, import those of the owner', async () => {
    const service = await openDatabase(readConfig(sourceDatabase.settings), MIGRATIONS);
    // PostgreSQL 15 checks the sequence before the schema.
    await expect(exported(service)).rejects.toThrow(/^permission denied for (schema test_other|sequence Bill_id_seq)$/);
    await source.query('GRANT USAGE ON SCHEMA test_other TO PUBLIC');
    await source.query('GRANT SELECT ON ALL TABLES IN SCHEMA test_other TO PUBLIC');
    await source.query('GRANT SELECT ON ALL SEQUENCES IN SCHEMA test_other TO PUBLIC');
    const own = await exported(service);
    // No row is missing without a word.
    await source.query('ALTER TABLE test_audit ENABLE ROW LEVEL SECURITY');
    await expect(exported(service)).rejects.toThrow('query would be affected by row-level security policy');
    await source.query('ALTER TABLE test_audit DISABLE ROW LEVEL SECURITY');
    await service.destroy();
    expect(body(own)).toEqual(body(await exported(source)));
    const weak = await openDatabase(readConfig(targetDatabase.settings), MIGRATIONS);
    await expect(imported(weak, own)).rejects.toThrow(
      /^PostgreSQL refuses: .+\. Nothing was imported\. Import as the owner of the schema who also runs migrate, /,
    );
    await weak.destroy();
  });
}

test('an export that is damaged or of another kind is refused, and the database stays as it was', async () => {
  await emptyTarget();
  await target.query('ALTER SEQUENCE pet_id_seq RESTART WITH 77');
  const before = await everythingIn(target);
  const bytes = await exported(source);
  // The seed is fixed; the steps hit different places of frames and lines.
  for (let position = 0; position < bytes.length; position += 1 + Math.floor(bytes.length / 12)) {
    const changed = Buffer.from(bytes);
    changed[position] = (changed[position] as number) ^ 4;
    expect(await refusalOf(changed)).toMatch(/Nothing was imported/);
    expect(await refusalOf(bytes.subarray(0, position))).toMatch(/^(The export is damaged|PostgreSQL refuses)/);
  }
  expect(await refusalOf(Buffer.concat([bytes, Buffer.from('\n')]))).toMatch(/^The export is damaged: it goes on/);
  const commit = bytes.lastIndexOf('COMMIT;') + 'COMMIT'.length;
  expect(await refusalOf(bytes.subarray(0, commit))).toMatch(/^The export is damaged: it ends too early\./);
  const joined = Buffer.from(bytes);
  joined[commit + 1] = 0x0b;
  expect(await refusalOf(joined)).toMatch(/^The export is damaged: it ends too early\./);
  const malformed = Buffer.from(bytes.toString().replace(/^.+/, '-- A dump').split('-- sha256')[0] as string);
  const checksum = createHash('sha256').update(malformed).digest('hex');
  expect(await refusalOf(Buffer.concat([malformed, Buffer.from(`-- sha256 ${checksum}\n`)]))).toMatch(
    /: it does not begin/,
  );
  expect(await everythingIn(target)).toEqual(before);
});

test.each(['x', '\0'])(
  'a file of one line of 16 MB of %j, which arrives in pieces, is refused in seconds',
  async (character) => {
    async function* pieces(): AsyncGenerator<Buffer> {
      for (let index = 0; index < 16_384; index++) yield Promise.resolve(Buffer.alloc(1_024, character));
    }
    await expect(importDatabase(target, 'petstore', pieces())).rejects.toThrow(/: it does not begin/);
  },
  20_000,
);

test('an import into a database with rows is refused', async () => {
  const bytes = await exported(source);
  await target.query(`TRUNCATE pet; INSERT INTO pet (name, category_id) VALUES ('stays', 1)`);
  expect(await refusalOf(bytes)).toMatch(
    /^The database is not empty: it holds rows of .*\bpet\b.* Import into an empty one\. Nothing was imported\.$/,
  );
  expect(await target.query('SELECT name FROM pet')).toEqual([{ name: 'stays' }]);
});

test('another schema is refused, whichever side has more migrations', async () => {
  const bytes = await exported(source);
  await target.query(`UPDATE schema_migration SET name = 'Other' || name WHERE id = 1`);
  const message = await refusalOf(bytes);
  await target.query(`UPDATE schema_migration SET name = substr(name, 6) WHERE id = 1`);
  expect(message).toMatch(
    /^Only one of the export and the database has (OtherCreatePet\d+, CreatePet\d+|CreatePet\d+, OtherCreatePet\d+)\. .+ wrote the export \(1\.0\.0\), and migrate then\. Nothing was imported\.$/,
  );
});

test('an export shows one moment of the database, and the service serves requests meanwhile', async () => {
  const app = await createTestApp();
  await app.sql(`INSERT INTO pet (name, category_id) SELECT 'Rex', n FROM generate_series(1, 2000) n`);
  const answers: number[] = [];
  const pieces: string[] = [];
  const sharesConnection = engine === 'embedded';
  await exportDatabase(app.nest.get(DataSource), SERVICE, sharesConnection, async (text) => {
    pieces.push(text);
    answers.push((await app.client.post('/v1/pets', { name: 'late', categoryId: 1 })).status);
    await app.sql(`UPDATE pet SET name = 'changed' WHERE category_id = 1999`);
    await sleep(1);
  });
  const text = pieces.join('');
  expect(text.match(/^\d+\tRex\t/gm)).toHaveLength(2000);
  expect(text).not.toContain('late');
  expect(text).not.toContain('changed');
  expect(answers.length).toBeGreaterThan(4);
  expect(answers).toEqual(answers.map(() => 201));
  expect(await app.sql(`SELECT count(*) FROM pg_cursors WHERE name LIKE 'petstore_export%'`)).toEqual([['0']]);
  await app.close();
});

test('an export whose file fails leaves neither a transaction nor cursors', async () => {
  const app = await createTestApp();
  await app.sql(`INSERT INTO pet (name, category_id) SELECT 'Rex', n FROM generate_series(1, 2000) n`);
  for (const sharesConnection of engine === 'embedded' ? [true, false] : [false]) {
    let written = 0;
    const failing = exportDatabase(app.nest.get(DataSource), SERVICE, sharesConnection, () =>
      (written += 1) > 2 ? Promise.reject(new Error('full')) : Promise.resolve(),
    );
    await expect(failing).rejects.toThrow('full');
  }
  expect(await app.sql(`SELECT count(*) FROM pg_cursors WHERE name LIKE 'petstore_export%'`)).toEqual([['0']]);
  expect((await app.client.post('/v1/pets', { name: 'Rex', categoryId: 1 })).status).toBe(201);
  await app.close();
});

describe('whatever others set', () => {
  const types = Object.values(pg.types.builtins);
  const parsers = new Map(types.map((type) => [type, pg.types.getTypeParser(type)]));
  afterEach(() => parsers.forEach((parser, type) => pg.types.setTypeParser(type, parser as (text: string) => unknown)));

  test.each([
    ['DateStyle German', { ...HOSTILE, datestyle: 'German' }],
    ['DateStyle SQL, DMY', { ...HOSTILE, datestyle: 'SQL, DMY' }],
    ['DateStyle Postgres, MDY', { ...HOSTILE, datestyle: 'Postgres, MDY' }],
    ['global parsers of pg', undefined],
  ])('every row is moved: %s', async (_, settings?: Readonly<Record<string, string>>) => {
    const [from, to] = [await createTestDatabase(), await createTestDatabase()];
    for (const database of [from, to]) await setDefaults(database, settings ?? {});
    const app = await createTestApp({ database: from });
    const insert = 'INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $1)';
    await app.sql(insert, [2n ** 62n + 1n, '\\ü € 😀']);
    const headers = { 'idempotency-key': 'moved' };
    const created = await app.client.post('/v1/pets', { name: '\\ü \'"😀', categoryId: 7 }, { headers });
    expect(created.status).toBe(201);
    if (settings === undefined) {
      for (const type of types) pg.types.setTypeParser(type, (text) => ({ foreign: text }) as never);
      // TypeORM reads the version of PostgreSQL.
      pg.types.setTypeParser(pg.types.builtins.TEXT, (text) => text);
    }
    const dataSource = app.nest.get(DataSource);
    const lines: string[] = [];
    const write = (text: string): Promise<void> => Promise.resolve(void lines.push(text));
    await exportDatabase(dataSource, PET_STORE, engine === 'embedded', write);
    const imported = await openDatabase(readConfig(to.ownerSettings), MIGRATIONS);
    try {
      await importDatabase(imported, 'petstore', Readable.from(lines.map((line) => Buffer.from(line))));
      for (const table of ['pet', 'client', 'api_key', 'idempotency_key']) {
        const read = `/* exact */ SELECT to_jsonb(t)::text AS row FROM ${table} t ORDER BY 1`;
        const moved = await imported.query<unknown[]>(read);
        expect(moved.length).toBeGreaterThan(0);
        expect(moved).toEqual(await dataSource.query<unknown[]>(read));
      }
    } finally {
      await imported.destroy();
      await app.close();
      for (const database of [from, to]) await database.drop();
    }
  });
});

if (engine === 'postgresql') {
  test('psql loads an export, too', async () => {
    const [database, loaded] = await makeDatabase();
    for (const statement of FEATURE) await loaded.query(statement);
    const args = ['-v', 'ON_ERROR_STOP=1', '-q', '-o', '/dev/null', database.ownerSettings.DATABASE_URL ?? ''];
    const bytes = await exported(source);
    const psql = (): string => spawnSync('psql', args, { input: bytes, encoding: 'utf8' }).stderr;
    expect(psql()).toBe('');
    expect(await everythingIn(loaded)).toEqual(await everythingIn(source));
    expect(psql()).toMatch(/ERROR: {2}The database is not empty: it holds rows of /);
  });
}
