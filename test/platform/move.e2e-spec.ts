import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { migrate, openDatabase } from '#postgres';
import { moveDatabase } from '../../libs/commands/src/move.js';
import { type Outcome, petstoreCommand } from '../operation/support/petstore-command.js';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { administerTestDatabase, createEmptyTestDatabase, type TestDatabase } from '../support/database.js';
import { handedOver } from '../support/engines.js';
import { HOSTILE, setDefaults } from '../support/hostile-settings.js';
import { HttpClient } from '../support/http-client.js';
import { rowsOf } from '../support/own-database.js';
import { administer } from '../support/postgresql-database.js';
import { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';

/*
 * `move`, from the embedded engine to PostgreSQL: with the tables of a module in this process, and as a command with those of the shop.
 */

import.meta.jest.setTimeout(240_000);

/** The tables of a module, with all kinds of columns and constraints. */
const MODULE = [
  `CREATE TYPE test_mood AS ENUM ('calm', 'wild')`,
  `CREATE DOMAIN test_colour AS text CHECK (value <> 'none')`,
  `CREATE TABLE test_visit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent_id bigint CONSTRAINT fk_visit_parent REFERENCES test_visit,
    name text NOT NULL, length int GENERATED ALWAYS AS (length(name)) STORED,
    place int UNIQUE DEFERRABLE INITIALLY DEFERRED, gone text)`,
  `ALTER TABLE test_visit DROP gone`,
  `CREATE TABLE "Odd ""Name""" ("a b" char(5), "select" json, doc jsonb, f float8[], n numeric, i interval, d date,
    raw bytea, at timestamptz, b bool, c test_colour, m test_mood[], price money)`,
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
  `CREATE SEQUENCE test_restarted`,
  `CREATE SEQUENCE test_drawn`,
  `CREATE TABLE test_audit (what text)`,
  `CREATE FUNCTION note_visit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO test_audit VALUES (TG_NAME || ' ' || TG_OP); RETURN NULL; END $$`,
  ...['test_visit', 'test_measured'].map(
    (table) => `CREATE TRIGGER tr_row AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION note_visit()`,
  ),
  `CREATE TRIGGER tr_visit AFTER INSERT OR TRUNCATE ON test_visit EXECUTE FUNCTION note_visit()`,
  `CREATE TRIGGER tr_always AFTER INSERT ON test_visit EXECUTE FUNCTION note_visit()`,
  `CREATE TRIGGER tr_off AFTER INSERT ON test_visit EXECUTE FUNCTION note_visit()`,
  `ALTER TABLE test_visit ENABLE ALWAYS TRIGGER tr_always`,
  `ALTER TABLE test_visit DISABLE TRIGGER tr_off`,
  `CREATE VIEW test_names AS SELECT name FROM test_visit`,
  `CREATE TRIGGER tr_instead INSTEAD OF INSERT ON test_names FOR EACH ROW EXECUTE FUNCTION note_visit()`,
  // The statement takes long enough to be met.
  `CREATE MATERIALIZED VIEW test_summary AS SELECT count(*) AS visits, pg_sleep(0.5)::text FROM test_visit`,
  `CREATE MATERIALIZED VIEW test_summary_twice AS SELECT visits * 2 AS visits FROM test_summary`,
  `INSERT INTO test_visit (name, place) VALUES ('by the migration', 1), ('removed since', 2)`,
];

const ROWS = [
  `DELETE FROM test_visit WHERE name = 'removed since'`,
  `INSERT INTO pet (id, name, category_id, status) OVERRIDING SYSTEM VALUE VALUES
    (-9223372036854775808, E'tab\\tline\\nreturn\\rback\\\\slash \\\\N \\\\.', 9223372036854775807, 'sold'),
    (9223372036854775807, '\\.', -9223372036854775808, 'pending'), (-1, '\\N', 0, 'available'),
    (-2, E'\\b\\f\\v\\x01 \\u00e9\\u2028\\U0001F436"''', 1, 'sold')`,
  `INSERT INTO pet (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, 30000) n`,
  `DELETE FROM pet WHERE id BETWEEN 29990 AND 30000`,
  `INSERT INTO client (name) VALUES ('shop')`,
  `INSERT INTO api_key (client_id, prefix, hash, scopes, created_at, expires_at)
    SELECT id, 'pets_Shop000', sha256('old'), '{pets:read}', '2026-01-02 03:04:05.678901Z', 'infinity' FROM client`,
  `INSERT INTO key_usage SELECT id, 'getPet', '2026-11-20', 9223372036854775807, '2026-11-20 01:02:03.000001Z', 'a "b"' FROM api_key`,
  `INSERT INTO test_visit (id, parent_id, name, place) OVERRIDING SYSTEM VALUE VALUES (7, 9, 'child before its parent', 2), (9, NULL, '', 3)`,
  `INSERT INTO "Odd ""Name""" VALUES
    ('ab', '{"b":1,  "a":1.0e5,"a":2}', '{"z":123456789012345678901234567890.5}', '{0.30000000000000004,NaN,Infinity,NULL,1e-300}',
      12345678901234567890.123456789, '1 year -2 days 03:04:05.000006', '0044-03-15 BC', '\\x00ff0a5c',
      '1883-11-18 12:03:58.000001-07', true, 'red', '{wild,NULL,calm}', 1234.5::numeric::money),
    (NULL, NULL, NULL, '{}', 'NaN', NULL, 'infinity', '', '-infinity', false, '', '{}', NULL)`,
  // Longer than a slice, and incompressible.
  `INSERT INTO "Odd ""Name""" (raw) SELECT decode(string_agg(md5(n::text || k::text), ''), 'hex')
    FROM generate_series(1, 75000) n, generate_series(1, 3) k GROUP BY k`,
  `INSERT INTO test_measured VALUES ('2026-05-05', 0.1), ('1999-01-01', 3)`,
  `INSERT INTO test_left_side VALUES (1, NULL); INSERT INTO test_right_side VALUES (2, 1); UPDATE test_left_side SET right_id = 2`,
  `INSERT INTO test_base VALUES (1); INSERT INTO test_derived VALUES (2, 'two')`,
  `INSERT INTO test_other."Bill" (total) VALUES (1.5), (2.50)`,
  `SELECT nextval('test_drawn'), nextval('test_drawn')`,
  `SELECT nextval('test_restarted'); ALTER SEQUENCE test_restarted RESTART WITH 77`,
  `REFRESH MATERIALIZED VIEW test_summary; REFRESH MATERIALIZED VIEW test_summary_twice`,
];

/** Statements that need the next values of sequences, and write into a table by a trigger. */
const NEXT = [
  `INSERT INTO api_key (client_id, prefix, hash, scopes) SELECT id, 'pets_Next000', sha256('next'), '{}' FROM client RETURNING id`,
  `INSERT INTO pet (name, category_id) VALUES ('next', 1) RETURNING id`,
  `INSERT INTO test_visit (name) VALUES ('next') RETURNING id`,
  `INSERT INTO test_measured VALUES ('2026-06-06') RETURNING id`,
  `INSERT INTO test_other."Bill" (total) VALUES (1) RETURNING id`,
  ...['test_invoice_number', 'test_restarted', 'test_drawn'].map((sequence) => `SELECT nextval('${sequence}')`),
  `SELECT count(*) FROM test_audit`,
];

const MODULE_MIGRATIONS = [
  ...MIGRATIONS,
  class CreateModule1896000000000 {
    readonly backwardCompatible = true;
    async up(queryRunner: QueryRunner): Promise<void> {
      for (const statement of MODULE) await queryRunner.query(statement);
    }
    async down(): Promise<void> {
      // Never reverted.
    }
  },
];

/** Which tables a database has, without those of other applications. */
const TABLES = `/* exact */ SELECT oid::regclass::text AS name FROM pg_class
  WHERE relnamespace IN (current_schema()::regnamespace, to_regnamespace('test_other')) AND relkind IN ('r', 'p', 'm')
  AND relname NOT IN ('schema_migration', 'typeorm_metadata') ORDER BY oid::regclass::text COLLATE "C"`;

/** What a move removes for a time. */
const FOREIGN_KEYS = `SELECT conrelid::regclass::text AS name, conname::text, pg_get_constraintdef(oid) AS definition, convalidated::text
  FROM pg_constraint WHERE contype = 'f' AND conrelid::regclass::text NOT LIKE 'public.%' ORDER BY 1, 2`;
const TRIGGERS = `SELECT tgrelid::regclass::text AS name, tgname::text, tgenabled::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2`;

const SEQUENCES = `SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'S' AND relname <> 'schema_migration_id_seq' ORDER BY 1`;

/** So that every server prints a value alike. */
const PRINTED = `SET timezone = 'UTC'; SET intervalstyle = 'postgres'; SET extra_float_digits = 3; SET bytea_output = 'hex';
  SET lc_monetary = 'C'; SET quote_all_identifiers = off`;

const directories: string[] = [];
const databases: TestDatabase[] = [];
let home: string;
/** Data directories: without rows, and with 60,000 pets. */
let migrated: string;
let shop: string;
let source: DataSource;

async function openDirectory(directory: string): Promise<DataSource> {
  return openDatabase(readConfig({ DATA_DIR: directory }), MODULE_MIGRATIONS);
}

async function copyOf(directory: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'petstore-move-'));
  directories.push(copy);
  await cp(directory, copy, { recursive: true });
  return copy;
}

async function emptyTarget(): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  databases.push(database);
  return database;
}

const urlOf = ({ ownerSettings }: TestDatabase): string => ownerSettings.DATABASE_URL ?? '';
const nameOf = (database: TestDatabase): string => new URL(urlOf(database)).pathname.slice(1);

function move(
  target: TestDatabase,
  report?: (line: string) => void,
  progress?: (done: number, total: number) => void,
): Promise<number> {
  return moveDatabase(source, readConfig(target.ownerSettings), MODULE_MIGRATIONS, report, progress);
}

async function refusalOf(moving: Promise<unknown>): Promise<string> {
  return String(await moving.catch((error: Error) => error.message));
}

/** Every row as PostgreSQL prints it, the states of sequences, foreign keys and triggers. */
async function everythingIn(dataSource: DataSource): Promise<Record<string, unknown>> {
  const queryRunner = dataSource.createQueryRunner();
  const read = (query: string): Promise<{ name: string }[]> => queryRunner.query(`/* exact */ ${query}`);
  await read(PRINTED);
  const found: Record<string, unknown> = { foreignKeys: await read(FOREIGN_KEYS), triggers: await read(TRIGGERS) };
  for (const { name } of await read(TABLES)) {
    found[name] = await read(`SELECT md5(t::text) AS row FROM ONLY ${name} t ORDER BY 1`);
  }
  for (const { name } of await read(SEQUENCES)) {
    found[name] = await read(`SELECT last_value::text, is_called::text FROM ${name}`);
  }
  await queryRunner.release();
  return found;
}

/** The tables that have rows. */
async function filledTables(url: string): Promise<string[]> {
  const tables = await rowsOf<[string]>(url, TABLES);
  const found: string[] = [];
  for (const [name] of tables) {
    const [row] = await rowsOf(url, `SELECT 1 FROM ONLY ${name} LIMIT 1`).catch(() => []);
    if (row) found.push(name);
  }
  return found;
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-move-'));
  migrated = join(home, 'migrated');
  const first = await openDatabase(readConfig({ DATA_DIR: migrated }), MIGRATIONS);
  await migrate(first);
  await first.destroy();
  shop = await copyOf(migrated);
  const filled = await openDatabase(readConfig({ DATA_DIR: shop }), MIGRATIONS);
  await filled.query(`INSERT INTO pet (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, 60000) n`);
  await filled.destroy();
  source = await openDirectory(await copyOf(migrated));
  await migrate(source);
  for (const statement of ROWS) await source.query(statement);
});
afterAll(async () => {
  await source.destroy();
  for (const database of databases) await database.drop();
  for (const directory of [...directories, home]) await rm(directory, { recursive: true, force: true });
});

/** A database of another locale, where another application has its tables in the schema public, and ours is another one. */
async function crowdedTarget(): Promise<TestDatabase> {
  const database = await emptyTarget();
  const url = new URL(urlOf(database));
  const name = nameOf(database);
  const owner = `${name}_other`;
  await database.drop();
  const server = handedOver('serverUrl');
  await administer(server, `CREATE ROLE ${owner} LOGIN PASSWORD 'secret'`);
  await administer(server, `CREATE DATABASE ${name} LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C' TEMPLATE template0`);
  await administerTestDatabase(
    database,
    `CREATE SCHEMA shop AUTHORIZATION ${owner}; ALTER ROLE ${owner} SET search_path TO shop; GRANT CREATE ON DATABASE ${name} TO ${owner};
    CREATE TABLE public.pet (id int PRIMARY KEY); CREATE TABLE public.tag (pet_id int REFERENCES public.pet); INSERT INTO public.pet VALUES (1);
    INSERT INTO public.tag VALUES (1); CREATE TABLE public.schema_migration (mine int)`,
  );
  Object.assign(url, { username: owner, password: 'secret' });
  const own = {
    ...database,
    ownerSettings: { DATABASE_URL: url.href },
    drop: async () => {
      await database.drop();
      await administer(server, `DROP ROLE ${owner}`);
    },
  };
  databases.splice(databases.length - 1, 1, own);
  return own;
}

describe('tables of every kind', () => {
  test.each([
    ['to the schema public, as its owner', emptyTarget],
    ['to another locale, role and schema, beside another application', crowdedTarget],
  ])('equal those of the source: %s', async (_, makeTarget) => {
    const database = await makeTarget();
    const steps: [done: number, total: number][] = [];
    const rows = await move(database, undefined, (...step) => steps.push(step));
    const target = await openDatabase(readConfig(database.ownerSettings), MODULE_MIGRATIONS);
    const before = await everythingIn(source);
    expect(await everythingIn(target)).toEqual(before);
    expect((before.triggers as unknown[]).length).toBeGreaterThan(6);
    expect(before.test_summary).toHaveLength(1);
    // Slices are short: the pets take two.
    expect(steps.at(-1)).toEqual([rows, rows]);
    expect(Math.max(...steps.map(([done], index) => done - (steps[index - 1]?.[0] ?? 0)))).toBeLessThan(25_000);
    // The planner knows the new rows.
    const known = `SELECT reltuples::int AS rows FROM pg_class WHERE oid = 'pet'::regclass`;
    expect(await target.query(known)).toEqual([{ rows: 29_993 }]);
    const own = source.createQueryRunner();
    await own.startTransaction();
    for (const next of NEXT) expect([next, await target.query(next)]).toEqual([next, await own.query(next)]);
    await own.rollbackTransaction();
    await own.release();
    await target.destroy();
    if (makeTarget === crowdedTarget) {
      const others =
        'SELECT id, pet_id, (SELECT count(*)::int FROM public.schema_migration) FROM public.pet JOIN public.tag ON pet_id = id';
      const superuser = new URL(handedOver('serverUrl'));
      superuser.pathname = new URL(urlOf(database)).pathname;
      expect(await rowsOf(superuser.href, others)).toEqual([[1, 1, 0]]);
    }
  });
});

test('a target with a table of the service is refused, and stays as it was', async () => {
  const database = await emptyTarget();
  await rowsOf(urlOf(database), `CREATE TABLE client (name text); INSERT INTO client VALUES ('stays')`);
  const sentence = 'The target has client already, and nothing was moved. Give a database without tables.';
  expect(await refusalOf(move(database))).toBe(sentence);
  expect(await rowsOf(urlOf(database), TABLES)).toEqual([['client']]);
  expect(await rowsOf(urlOf(database), 'SELECT name FROM client')).toEqual([['stays']]);
  await rowsOf(urlOf(database), 'ALTER TABLE client RENAME TO typeorm_metadata');
  expect(await refusalOf(move(database))).toMatch(/^The target has typeorm_metadata already, /);
});

/** A failed move: its error says that no row was moved, and how to make the database anew; when that is done, the next move works. */
async function expectRemedy(database: TestDatabase, message: string): Promise<void> {
  const name = nameOf(database);
  const anew = `DROP DATABASE ${name}; CREATE DATABASE ${name} OWNER \\w+_owner`;
  const remedy = ` No row was moved\\. If nobody else uses the database, make it anew \\((${anew})\\), and try again\\.$`;
  expect(message).toMatch(new RegExp(remedy));
  const filled = await filledTables(urlOf(database));
  // What the migration has inserted may be there.
  expect(filled.filter((table) => !/^test_(visit|audit|summary|summary_twice)$/.test(table))).toEqual([]);
  const [, statements = ''] = new RegExp(remedy).exec(message) ?? [];
  for (const statement of statements.split('; ')) await administer(handedOver('serverUrl'), statement);
}

test('a table that the migrations do not make stops it with its name', async () => {
  const database = await emptyTarget();
  await source.query('CREATE TABLE test_by_hand (id int); CREATE SEQUENCE test_by_hand_too');
  const message = await refusalOf(move(database));
  await source.query('DROP TABLE test_by_hand; DROP SEQUENCE test_by_hand_too');
  expect(message).toMatch(/^The migrations did not make test_by_hand, test_by_hand_too, which DATA_DIR has\. /);
  await expectRemedy(database, message);
});

test('a row that the target refuses leaves none there', async () => {
  const database = await emptyTarget();
  await source.query(`ALTER TABLE test_right_side DROP CONSTRAINT fk_left; UPDATE test_right_side SET left_id = 5`);
  const message = await refusalOf(move(database));
  await source.query(`UPDATE test_right_side SET left_id = 1;
    ALTER TABLE test_right_side ADD CONSTRAINT fk_left FOREIGN KEY (left_id) REFERENCES test_left_side`);
  expect(message).toMatch(/^PostgreSQL refuses: .+fk_left.+\(SQLSTATE 23503\)\./);
  await expectRemedy(database, message);
  expect(await move(database)).toBeGreaterThan(30_000);
});

/** Ends the sessions of a database, or those that run a statement. */
function endSessions(database: TestDatabase, statement = ''): Promise<void> {
  const sessions = `FROM pg_stat_activity WHERE datname = '${nameOf(database)}' AND query LIKE '${statement}%'`;
  return administer(handedOver('serverUrl'), `SELECT pg_terminate_backend(pid) ${sessions}`);
}

test.each(['a migration', 'the first slice', 'the last slice', 'REFRESH'])(
  'a connection that is lost at a moment leaves no moved row: %s',
  async (moment) => {
    const database = await emptyTarget();
    let isOver = false;
    const ends: Promise<void>[] = [];
    const end = (isNow: boolean): void => void (isNow && ends.push(endSessions(database)));
    const onSlice = (done: number, total: number): void =>
      end(moment === (done < total ? 'the first slice' : 'the last slice'));
    const moving = move(database, () => end(moment === 'a migration'), onSlice);
    const refused = refusalOf(moving).finally(() => (isOver = true));
    while (moment === 'REFRESH' && !isOver) {
      await endSessions(database, 'REFRESH');
      await sleep(20);
    }
    const message = await refused;
    // They would end the sessions of the check, too.
    await Promise.all(ends);
    await expectRemedy(database, message);
  },
);

describe('whatever others set', () => {
  const types = Object.values(pg.types.builtins);
  const parsers = new Map(types.map((type) => [type, pg.types.getTypeParser(type)]));
  afterEach(() => parsers.forEach((parser, type) => pg.types.setTypeParser(type, parser as (text: string) => unknown)));

  test.each([
    ['DateStyle SQL, DMY', { ...HOSTILE, datestyle: 'SQL, DMY' }],
    ['global parsers of pg', undefined],
  ])('every row is moved: %s', async (_, settings?: Readonly<Record<string, string>>) => {
    const database = await emptyTarget();
    const directory = await copyOf(migrated);
    for (const each of [database, { settings: { DATA_DIR: directory } } as never as TestDatabase]) {
      await setDefaults(each, settings ?? {});
    }
    const own = await openDirectory(directory);
    await migrate(own);
    for (const statement of ROWS) await own.query(statement);
    if (settings === undefined) {
      for (const type of types) pg.types.setTypeParser(type, (text) => ({ foreign: text }) as never);
      // TypeORM reads the version of PostgreSQL.
      pg.types.setTypeParser(pg.types.builtins.TEXT, (text) => text);
    }
    await moveDatabase(own, readConfig(database.ownerSettings), MODULE_MIGRATIONS);
    const target = await openDatabase(readConfig(database.ownerSettings), MODULE_MIGRATIONS);
    expect(await everythingIn(target)).toEqual(await everythingIn(own));
    await target.destroy();
    await own.destroy();
  });
});

describe('the command', () => {
  const petstore = (settings: Record<string, string>, ...args: string[]): Promise<Outcome> =>
    petstoreCommand(home, settings, ...args);

  test('moves the shop, which then serves its pets to its keys on PostgreSQL', async () => {
    const directory = await copyOf(shop);
    const created = await petstore({ DATA_DIR: directory }, 'keys', 'create', '--client', 'shop', '--quiet');
    const database = await emptyTarget();
    const { code, stdout, stderr } = await petstore({ DATA_DIR: directory }, 'move', '--to', urlOf(database));
    const sentence = 'Moved 60002 rows. Set DATABASE_URL, and start the service. DATA_DIR is as it was.\n';
    expect([code, stdout]).toEqual([0, sentence]);
    expect(stderr).toMatch(/^(\d+\/\d+ \w+\n)+$/);
    const service = new ServiceProcess({ DATABASE_URL: database.settings.DATABASE_URL ?? '' }, home);
    const client = new HttpClient(await service.origin(), created.stdout.trim());
    expect((await client.get('/v1/pets/60000')).json).toMatchObject({ name: 'Rex 60000' });
    const { headers } = await client.post('/v1/pets', { name: 'next', categoryId: 7 });
    expect(headers.location).toMatch(/\/60001$/);
    await service.kill();
    expect((await petstore({ DATA_DIR: directory }, 'keys', 'list')).stdout).toContain(' shop ');
  });

  const NOWHERE = 'postgresql://shop@127.0.0.1:1/shop';
  test.each([
    [{}, NOWHERE, /^--to: PostgreSQL at 127\.0\.0\.1:1 cannot be used: /],
    [{}, 'mysql://shop@127.0.0.1/shop', /--to must be a PostgreSQL URI such as /],
    [{ DATABASE_URL: NOWHERE }, NOWHERE, /^move takes the embedded database in /],
    [{ DATA_DIR: 'nowhere' }, NOWHERE, /^DATA_DIR '.+nowhere' has no database, and none was made\./],
  ])('%j, --to %s: fails with one line', async (settings, to, message) => {
    const { code, stdout, stderr } = await petstore({ DATA_DIR: migrated, ...settings }, 'move', '--to', to);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^petstore: .+\n$/)]);
    expect(stderr.slice('petstore: '.length)).toMatch(message);
  });

  test.each(['SIGINT', 'SIGKILL'] as const)('%s leaves no moved row', async (signal) => {
    const database = await emptyTarget();
    const directory = await copyOf(shop);
    const program = [join(import.meta.dirname, '../../dist/src/cli.js'), 'move', '--to', urlOf(database)];
    const child = new ServiceProcess({ DATA_DIR: directory }, home, { program });
    const copying = `SELECT FROM pg_stat_activity WHERE datname = '${nameOf(database)}' AND query LIKE 'COPY pet%'`;
    await until(async () => (await rowsOf(handedOver('serverUrl'), copying)).length > 0);
    const code = await child.stop(signal);
    if (signal === 'SIGINT') {
      expect(code).toBe(1);
      await expectRemedy(database, child.stderr.trimEnd());
    } else {
      await until(async () => (await rowsOf(handedOver('serverUrl'), copying)).length === 0);
      expect(await filledTables(urlOf(database))).toEqual([]);
    }
  });
});
