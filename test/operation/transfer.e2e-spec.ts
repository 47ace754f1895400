import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';
import { type Outcome, petstoreCommand } from './support/petstore-command.js';

/*
 * `export` and `import` as processes. platform/transfer tests what they move.
 */

import.meta.jest.setTimeout(240_000);

const CLI = new URL('../../dist/src/cli.js', import.meta.url).pathname;
/** Enough for some frames, so that a command can be stopped between two. */
const ANIMALS = 60_000;

let source: TestDatabase;
let home: string;
/** The file of a whole export. */
let file: string;
const databases: TestDatabase[] = [];

const petstore = ({ ownerSettings }: TestDatabase, ...args: string[]): Promise<Outcome> =>
  petstoreCommand(home, ownerSettings, ...args);

async function query<Row>(database: TestDatabase, statement: string): Promise<Row[]> {
  const dataSource = await openDatabase(readConfig(database.ownerSettings));
  try {
    return await dataSource.query<Row[]>(statement);
  } finally {
    await dataSource.destroy();
  }
}

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  databases.push(database);
  return database;
}

const CONTENT = `SELECT count(*)::int, md5(string_agg(p::text, ',' ORDER BY id)), (SELECT nextval('pet_id_seq')) AS next FROM pet p`;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-transfer-'));
  source = await emptyDatabase();
  await query(
    source,
    `INSERT INTO pet (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, ${ANIMALS}) n`,
  );
  file = join(home, 'all');
  expect(await petstore(source, 'export', '--to', 'all')).toMatchObject({ code: 0, stderr: '' });
});
afterAll(async () => {
  for (const database of databases) await database.drop();
  await rm(home, { recursive: true, force: true });
});

test('from one engine to the other and back, gzipped and through pipes', async () => {
  // The path of an embedded database that the import makes.
  const directory = join(home, 'data');
  const settings = { DATA_DIR: directory };
  const other: TestDatabase = { settings, ownerSettings: settings, drop: () => Promise.resolve() };
  const there = await petstore(other, 'import', '--from', 'all');
  expect([there.code, there.stdout, there.stderr]).toEqual([
    0,
    expect.stringMatching(/^Imported 60000 rows\.\n\nTABLE +ROWS\n[^]*^pet +60000\n/m),
    '',
  ]);
  expect(await petstore(other, 'export', '--to', 'back.gz', '--json')).toMatchObject({ code: 0, stderr: '' });

  const target = await emptyDatabase();
  const child = spawn('/bin/sh', ['-c', `"$0" "$1" import --from - --json <back.gz`, process.execPath, CLI], {
    cwd: home,
    env: { PATH: process.env.PATH, ...target.ownerSettings },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  expect((await once(child, 'exit'))[0]).toBe(0);
  const content = await query(target, CONTENT);
  expect(content).toEqual([{ count: ANIMALS, md5: expect.any(String) as string, next: String(ANIMALS + 1) }]);
  expect(await query(source, CONTENT)).toEqual(content);
});

test('a file is readable for its owner alone, and replaced only when told so, by a whole one', async () => {
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600');
  const old = join(home, 'old.gz');
  await writeFile(old, 'keep');
  const refused = await petstore(source, 'export', '--to', 'old.gz');
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    "petstore: 'old.gz' exists. Name another one, or replace it with --overwrite.\n",
  ]);
  // Fails behind its beginning: a database without a schema.
  const bare = await createEmptyTestDatabase();
  databases.push(bare);
  expect(await petstore(bare, 'export', '--to', 'old.gz', '--overwrite')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'petstore: The database has no schema, so there is nothing to export. Check DATABASE_URL and DATA_DIR.\n',
  });
  expect(await readFile(old, 'utf8')).toBe('keep');
  expect((await petstore(source, 'export', '--to', 'old.gz', '--overwrite')).code).toBe(0);
  expect(
    gunzipSync(await readFile(old))
      .subarray(0, 19)
      .toString(),
  ).toBe('{"petstore-export":');
  expect((await readdir(home)).filter((name) => name.endsWith('.part'))).toEqual([]);
});

test.each([
  [['export', '--to', 'none/x'], "'none/x' cannot be written: its directory does not exist."],
  [['import', '--from', 'none'], "'none' cannot be read: it does not exist."],
  [['import', '--from', '.'], "'.' is a directory. Name a file."],
])('%j is one line', async (args, message) => {
  expect(await petstore(source, ...args)).toEqual({ code: 1, stdout: '', stderr: `petstore: ${message}\n` });
});

test('a full disk, or a reader that has gone, is one line', async () => {
  for (const [stdout, message] of [
    [openSync('/dev/full', 'w'), 'the disk is full'],
    ['pipe', 'nobody reads it'],
  ] as const) {
    const child = spawn(process.execPath, [CLI, 'export', '--to', '-'], {
      cwd: home,
      env: { PATH: process.env.PATH, ...source.settings },
      stdio: ['ignore', stdout, 'pipe'],
    });
    child.stdout?.destroy();
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const [code] = (await once(child, 'close')) as [number];
    if (typeof stdout === 'number') closeSync(stdout);
    expect([code, stderr]).toEqual([1, `petstore: Standard output cannot be written: ${message}.\n`]);
  }
});

test('an export that is killed leaves no file of the name; one that is interrupted leaves nothing', async () => {
  for (const signal of ['SIGKILL', 'SIGINT'] as const) {
    const child = spawn(process.execPath, [CLI, 'export', '--to', 'partial'], {
      cwd: home,
      env: { PATH: process.env.PATH, ...source.settings },
      stdio: 'ignore',
    });
    const drafts = async (): Promise<string[]> => (await readdir(home)).filter((name) => name.endsWith('.part'));
    while ((await drafts()).length === 0 && child.exitCode === null) await sleep(1);
    child.kill(signal);
    expect((await once(child, 'exit'))[1]).toBe(signal);
    const left = await drafts();
    expect([signal, left.length, (await readdir(home)).includes('partial')]).toEqual([
      signal,
      signal === 'SIGKILL' ? 1 : 0,
      false,
    ]);
    const [draft] = left;
    if (draft === undefined) continue;
    const outcome = await petstore(await emptyDatabase(), 'import', '--from', draft);
    expect([outcome.code, outcome.stderr]).toEqual([1, expect.stringMatching(/^petstore: (The export is|This is no)/)]);
    await rm(join(home, draft));
  }
});

test('an import that is killed leaves nothing, and another one works', async () => {
  const bytes = await readFile(file);
  const target = await emptyDatabase();
  const child = spawn(process.execPath, [CLI, 'import', '--from', '-'], {
    cwd: home,
    env: { PATH: process.env.PATH, ...target.ownerSettings },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // All but the end: it has taken nearly everything, and waits for the rest.
  await new Promise((taken) => child.stdin.write(bytes.subarray(0, bytes.length - 100), taken));
  await sleep(3_000);
  expect(child.exitCode).toBeNull();
  child.kill('SIGKILL');
  await once(child, 'exit');
  const [{ count, next }] = (await query(target, CONTENT)) as [{ count: number; next: string }];
  expect([count, next]).toEqual([0, '1']);
  expect(await petstore(target, 'import', '--from', file)).toMatchObject({ code: 0, stderr: '' });
  const [{ next: following, ...content }] = (await query(target, CONTENT)) as [{ next: string }];
  expect(Number(following)).toBeGreaterThan(ANIMALS);
  expect(await query(source, CONTENT)).toEqual([expect.objectContaining(content)]);
});
