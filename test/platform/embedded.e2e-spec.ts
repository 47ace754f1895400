import { chmod, mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { MAX_ENGINE_FILES, openEngine } from '#embedded-postgres';
import { StartupError } from '#runtime';
import { Database } from '#postgres';
import { MIGRATIONS, readConfig } from '../support/config.js';
import { dataSourceOptions, openCurrentDatabase } from '../../libs/postgres/src/data-source.js';
import { Handlers } from '../ordinary-nest/handlers.js';
import { petstoreCommand } from '../operation/support/petstore-command.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';
import { giveAway } from '../support/foreign-files.js';
import { HttpClient } from '../support/http-client.js';
import { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';

let database: TestDatabase;
let dataDir: string;

beforeEach(async () => {
  database = await createTestDatabase();
  dataDir = database.settings.DATA_DIR ?? '';
});

afterEach(() => database.drop());

async function open(directory = dataDir): Promise<DataSource> {
  return openCurrentDatabase(await dataSourceOptions(readConfig({ DATA_DIR: directory }), MIGRATIONS));
}

const refusal = (message: RegExp): object => ({
  name: StartupError.name,
  message: expect.stringMatching(message) as string,
});

/** Opens the database for statements, and returns the rows of the last one. */
async function run(...statements: string[]): Promise<Record<string, string>[]> {
  const dataSource = await open();
  let rows: Record<string, string>[] = [];
  for (const statement of statements) rows = await dataSource.query(statement);
  await dataSource.destroy();
  return rows;
}

test('a missing DATA_DIR is created for its owner alone, where everybody may write, too', async () => {
  await chmod(dataDir, 0o777);
  const directory = join(dataDir, 'new');
  await (await open(directory)).destroy();
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
});

test('a first start makes the database, also in an empty directory, and removes the remains of a killed one', async () => {
  const empty = await createEmptyTestDatabase();
  const nested = join(empty.settings.DATA_DIR ?? '', 'a', 'b');
  await mkdir(join(nested, 'initdb-killed', 'base'), { recursive: true });
  await mkdir(join(nested, 'postgres'));
  const dataSource = await open(nested);
  expect(await dataSource.query('SELECT count(*) FROM pet')).toEqual([{ count: '0' }]);
  await dataSource.destroy();
  expect(await readdir(nested)).toEqual(['postgres']);
  await empty.drop();
});

test('a DATA_DIR that is a file, below one, or that cannot be written is refused', async () => {
  const file = join(dataDir, 'file');
  await writeFile(file, '');
  // Not even root can create a directory in /sys.
  for (const directory of [file, join(file, 'below'), '/sys/petstore']) {
    await expect(open(directory)).rejects.toMatchObject(
      refusal(
        /^DATA_DIR '.+' cannot be used \(.*E[A-Z]+: .+\)\. Set DATA_DIR to a directory that can be written, or DATABASE_URL\.$/,
      ),
    );
  }
});

test('a copy that lacks empty folders opens with all rows, and other users get no rights', async () => {
  const cluster = join(dataDir, 'postgres');
  await run(`INSERT INTO pet (name, category_id) VALUES ('copied', 1)`);
  const folders = await readdir(cluster, { recursive: true });
  const all = [...folders].sort();
  // Innermost first, until no folder is empty.
  for (const name of folders.sort().reverse()) {
    const path = join(cluster, name);
    if ((await stat(path)).isDirectory() && (await readdir(path)).length === 0) await rm(path, { recursive: true });
  }
  expect((await readdir(cluster, { recursive: true })).length).toBeLessThan(all.length - 10);
  await chmod(cluster, 0o755);
  expect(await run('SELECT name FROM pet')).toEqual([{ name: 'copied' }]);
  expect((await readdir(cluster, { recursive: true })).sort()).toEqual(
    expect.arrayContaining(all.filter((name) => !name.includes('.'))),
  );
  expect((await stat(cluster)).mode & 0o777).toBe(0o750);
  expect((await stat(join(cluster, 'pg_notify'))).mode & 0o777).toBe(0o700);
});

test('the engine has the major version that databases are compared with, and opens few enough files', async () => {
  const [settings] = await run(
    `SELECT current_setting('server_version') AS version, current_setting('max_files_per_process') AS files`,
  );
  // Connections need the other files.
  expect(settings).toEqual({ version: expect.stringMatching(/^18\./) as string, files: String(MAX_ENGINE_FILES) });
});

test.each<[string, (cluster: string) => Promise<unknown>, RegExp]>([
  [
    'of another user',
    giveAway,
    /^The database '.+\/postgres' belongs to the user with the id \d+\. Run this as that user\.$/,
  ],
  [
    'that is broken',
    (cluster) => writeFile(join(cluster, 'global', 'pg_control'), 'not a control file'),
    /^The embedded database in DATA_DIR '.+' does not open \(.+\)\. If it is on no local disk, .+ restore a backup\.$/,
  ],
  [
    'of another major version',
    (cluster) => writeFile(join(cluster, 'PG_VERSION'), '17\n'),
    /^The database '.+' is of PostgreSQL 17, and this version of the service has 18: .+ 'move' it to a PostgreSQL server\.$/,
  ],
  [
    'that is none',
    (cluster) => rm(join(cluster, 'PG_VERSION')),
    /^'.+' is not empty, and no database of PostgreSQL: it has no PG_VERSION\. /,
  ],
])('a database %s is refused with the remedy, and not changed', async (_, damage, message) => {
  const cluster = join(dataDir, 'postgres');
  await damage(cluster);
  const before = await readdir(cluster, { recursive: true });
  await expect(open()).rejects.toMatchObject(refusal(message));
  const after = await readdir(cluster, { recursive: true });
  expect(after.filter((name) => name !== 'postmaster.pid')).toEqual(before);
  expect(await readdir(dataDir)).toEqual(['postgres']);
});

test('a DATA_DIR that everybody may write is refused, through a link, too; one that its group may write is not', async () => {
  const link = `${dataDir}-link`;
  await symlink(dataDir, link);
  const message =
    /^Everybody may write to DATA_DIR '.+', and so replace the database\. Run: chmod o-w '.+', or set DATA_DIR to a new directory in it\.$/;
  for (const mode of [0o777, 0o1777, 0o702]) {
    await chmod(dataDir, mode);
    for (const directory of [dataDir, link]) await expect(open(directory)).rejects.toMatchObject(refusal(message));
  }
  await rm(link);
  await chmod(dataDir, 0o2770);
  await (await open()).destroy();
});

describe('on a file system', () => {
  /** Starts the service after a change of Node's file functions, in the place of a file system that cannot be made here. */
  const startWith = (change: string): ServiceProcess => {
    const code = `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module'; ${change}; syncBuiltinESMExports();`;
    const main = join(import.meta.dirname, '../../dist/bundle/main.js');
    const program = ['--import', `data:text/javascript,${encodeURIComponent(code)}`, main];
    return new ServiceProcess(database.settings, dataDir, { program });
  };

  test('without access rights a DATA_DIR that everybody may write is reported, and served', async () => {
    await chmod(dataDir, 0o777);
    const service = startWith('fs.promises.chmod = async () => {}');
    await service.origin();
    expect(await service.stop('SIGTERM')).toBe(0);
    expect(service.stdout).toMatch(
      /"level":40,[^\n]+"msg":"The file system of DATA_DIR '[^']+' has no access rights: every user of this machine may read and change the data\."/,
    );
  });

  test('that is full the start says so, and that nothing is lost', async () => {
    await writeFile(join(dataDir, 'postgres', 'global', 'pg_control'), '');
    const service = startWith('fs.promises.statfs = async () => ({ bavail: 16000, bsize: 4096, files: 9, ffree: 9 })');
    expect(await service.ended).toBe(1);
    expect(service.stderr).toMatch(
      /^petstore: The embedded database in DATA_DIR '[^']+' does not open \([^\n]+\)\. Its disk is full: free 64 MiB, and start again\. Nothing that was stored is lost\.\n$/,
    );
  });
});

test('a statement that waits for the next turn does not run when its connection is closed', async () => {
  const engine = await openEngine(dataDir);
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client(engine.poolOptions);
    await client.connect();
    return client;
  };
  const insert = (name: string): string => `INSERT INTO pet (name, category_id) VALUES ('${name}', 1)`;
  const given = await connect();
  given.on('error', () => undefined);
  const first = given.query(insert('first'));
  const second = given.query(insert('second'));
  second.catch(() => undefined);
  await first;
  await given.end();
  await expect(second).rejects.toThrow('Connection terminated');
  const other = await connect();
  expect((await other.query('SELECT name FROM pet')).rows).toEqual([{ name: 'first' }]);
  await other.end();
  await engine.close();
});

describe('under concurrent reads', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await createTestApp({ settings: { RATE_LIMIT_PER_MINUTE: '0' } });
    await app.sql(`INSERT INTO pet (name, category_id) VALUES ('first', 1)`);
  });
  afterEach(() => app.close());

  const read = async (): Promise<void> => {
    const calls = Array.from({ length: 32 }, (_, index) => app.client.get(`/v1/pets/${1 + index}`));
    for (const { status } of await Promise.all(calls)) expect([200, 404]).toContain(status);
  };

  test('requests share statements, whose plans and statistics follow a catalogue that grows from one pet to 200,000', async () => {
    /** The plan by which the engine's session reads several pets. */
    const plan = async (): Promise<string> => {
      const [[name]] = (await app.sql(`SELECT name FROM pg_prepared_statements WHERE name LIKE 'pet_find_many%'`)) as [
        [string],
      ];
      return (await app.sql(`EXPLAIN EXECUTE "${name}" ('{1,2}')`)).join('\n');
    };
    for (let round = 0; round < 10; round++) await read();
    const [[runs]] = (await app.sql(
      `SELECT sum(generic_plans + custom_plans)::int FROM pg_prepared_statements WHERE name LIKE 'pet_find%'`,
    )) as [[number]];
    expect(runs).toBeLessThan(160);
    expect(await plan()).toContain('Seq Scan');
    for (let part = 0; part < 20; part++) {
      await app.sql(`INSERT INTO pet (name, category_id) SELECT 'Pet ' || n, 1 FROM generate_series(1, 10000) n`);
      await read();
    }
    await until(async () => {
      await read();
      return (await plan()).includes('Index Scan');
    });
    const [[known, real]] = (await app.sql(
      `SELECT relpages, pg_relation_size(oid)::int / 8192 FROM pg_class WHERE relname = 'pet'`,
    )) as [[number, number]];

    expect(real).toBeGreaterThan(1_000);
    expect(known).toBeGreaterThan(real / 10);
  });

  test('statistics stay as they are until a transaction has ended', async () => {
    const pages = `SELECT relpages FROM pg_class WHERE relname = 'pet'`;
    await app.nest.get(Database).transaction(async ({ manager }) => {
      await manager.query(`INSERT INTO pet (name, category_id) SELECT 'Rex', 1 FROM generate_series(1, 5000)`);
      const deadline = performance.now() + 1_500;
      while (performance.now() < deadline) expect(await manager.query(pages)).toEqual([{ relpages: 0 }]);
    });
    await until(async () => Number((await app.sql(pages))[0]?.[0]) > 10);
  });
});

/** Ends the engine: PostgreSQL does not notice in time that the stack is used up. */
const DEADLY = `SELECT (repeat('[', 60000) || repeat(']', 60000))::jsonb`;

describe('a statement that nests too deeply', () => {
  const DEEP = new Handlers('test-deep');
  DEEP.get('statement', () => app.nest.get(DataSource).query(DEADLY));
  DEEP.get('transaction', () =>
    app.nest.get(Database).transaction(async ({ manager }) => {
      await manager.query(`INSERT INTO client (name) VALUES ('undone')`);
      await manager.query(DEADLY);
    }),
  );

  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ features: [{ module: class DeepModule {}, controllers: [DEEP.controller] }] });
  });
  afterAll(() => app.close());

  test.each([
    ['a sum of 2 000 terms', `SELECT ${Array(2_000).fill('1').join('+')}`],
    ['a recursion without end', 'SELECT test_endless(1)'],
  ])('%s: 54001 as on a server, and the engine goes on', async (_, text) => {
    await app.sql(
      `CREATE OR REPLACE FUNCTION test_endless(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN test_endless(n + 1); END'`,
    );
    app.log.lines.length = 0;
    const refused = { name: 'QueryFailedError', code: '54001' };
    await expect(app.nest.get(DataSource).query(text)).rejects.toMatchObject(refused);
    expect(await app.sql('SELECT 1')).toEqual([[1]]);
    expect(app.log.lines.filter(({ msg }) => msg.includes('embedded engine'))).toEqual([]);
  });

  test('if it ends the engine: 500, and the engine is opened again with every acknowledged change; until then readiness is 503', async () => {
    const created = await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 });
    expect((await app.client.get('/health/ready', { apiKey: null })).status).toBe(200);
    app.log.lines.length = 0;
    for (const way of ['statement', 'transaction']) {
      const deadly = app.client.get(`/v1/test-deep/${way}`, { expects500: true });
      const calls = Array.from({ length: 20 }, () => app.client.get(`/v1/pets/${created.json.id}`));
      expect(await deadly).toMatchObject({ status: 500, json: { code: 'internal_error' } });
      const ready = await app.client.get('/health/ready', { apiKey: null });
      expect(ready).toMatchObject({
        status: 503,
        json: { code: 'unavailable', message: 'The embedded database is being opened again.' },
        headers: { 'retry-after': '1' },
      });
      // They have waited.
      for (const { status, text } of await Promise.all(calls)) expect([status, text]).toEqual([200, created.text]);
      await until(async () => (await app.client.get('/health/ready', { apiKey: null })).status === 200);
      expect((await app.client.post('/v1/pets', { name: 'Max', categoryId: 7 })).status).toBe(201);
    }
    expect(await app.sql(`SELECT FROM client WHERE name = 'undone'`)).toEqual([]);
    const lines = app.log.lines.flatMap(({ context, level, msg }) =>
      context === 'EmbeddedEngine' ? `${level} ${msg}` : [],
    );
    const [ended, again] = [
      /^40 A statement has ended the embedded engine \(RangeError: .+\)\. It is/,
      /^30 .+ again after \d+ ms\.$/,
    ];
    expect(lines).toEqual([ended, again, ended, again].map((line) => expect.stringMatching(line) as string));
    // A person must look at it.
    expect(app.log.lines.filter(({ level }) => level === 50)).toHaveLength(2);
  });

  test('the memory of ended engines is given back', async () => {
    const other = await createTestApp();
    const end = async (): Promise<number> => {
      await expect(other.nest.get(DataSource).query(DEADLY)).rejects.toThrow();
      await other.sql('SELECT 1');
      return process.memoryUsage().external;
    };
    const before = await end();
    for (let count = 0; count < 3; count++) await end();
    const growth = (await end()) - before;
    await other.close();
    // Each has 200 MB. V8 keeps one or two until it collects garbage.
    expect(growth / 1_000_000).toBeLessThan(650);
  });
});

describe('a service whose engine has ended', () => {
  const API_KEY = 'bootstrap-key-of-the-tests';
  const DEADLY_PET = { name: 'deadly', categoryId: 1 };
  let service: ServiceProcess;
  let client: HttpClient;
  beforeEach(async () => {
    await run(
      `CREATE FUNCTION end_engine() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM (${DEADLY}); RETURN NEW; END $$`,
      `CREATE TRIGGER end_engine BEFORE INSERT ON pet FOR EACH ROW WHEN (NEW.name = 'deadly') EXECUTE FUNCTION end_engine()`,
    );
    service = new ServiceProcess({ ...database.settings, BOOTSTRAP_API_KEY: API_KEY }, dataDir);
    client = new HttpClient(await service.origin(), API_KEY);
  });
  afterEach(() => service.kill());
  const kill = async (): Promise<number> => (await client.post('/v1/pets', DEADLY_PET, { expects500: true })).status;

  test('runs commands, and stops on SIGTERM', async () => {
    const killed = kill();
    const listed = petstoreCommand(dataDir, database.settings, 'keys', 'list');
    expect([await killed, (await listed).code]).toEqual([500, 0]);
    // Others that share its statement are not refused with it.
    const others = Array.from({ length: 5 }, () => client.post('/v1/pets', { name: 'Rex', categoryId: 7 }));
    expect([await kill(), (await Promise.all(others)).map(({ status }) => status)]).toEqual([500, Array(5).fill(201)]);
    expect(await kill()).toBe(500);
    expect(await service.stop('SIGTERM')).toBe(0);
    expect(await run('SELECT name FROM pet')).toEqual(Array(5).fill({ name: 'Rex' }));
  });

  test('ends with a sentence and exit code 1 when it ends again and again, so that its supervisor starts it', async () => {
    for (let count = 0; count < 11; count++) expect(await kill()).toBe(500);
    expect(await service.ended).toBe(1);
    expect(service.stderr).toMatch(
      /\npetstore: The embedded engine has ended, and is not opened again: statements have ended it 11 times in a row\.\n$/,
    );
    await (await open()).destroy();
  });
});
