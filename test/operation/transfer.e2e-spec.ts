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
 * `export` and `import` as processes. platform/transfer tests which data they move.
 */

import.meta.jest.setTimeout(240_000);

const CLI = new URL('../../dist/src/cli.js', import.meta.url).pathname;
/** Enough for several frames, so that a command can be stopped between two of them. */
const ANIMALS = 60_000;

let source: TestDatabase;
let home: string;
/** The file of a complete export. */
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

test('all animals are moved from one engine to the other and back, with gzip and through pipes', async () => {
  // The import creates an embedded database here.
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

test('only its owner may read an export, and only a complete export with --overwrite replaces a file', async () => {
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600');
  const old = join(home, 'old.gz');
  await writeFile(old, 'keep');
  const refused = await petstore(source, 'export', '--to', 'old.gz');
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    "petstore: 'old.gz' exists. Name another one, or replace it with --overwrite.\n",
  ]);
  // This export fails after it has begun, because the database has no schema.
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
])('%j fails with one line', async (args, message) => {
  expect(await petstore(source, ...args)).toEqual({ code: 1, stdout: '', stderr: `petstore: ${message}\n` });
});

test('an export to a full disk, or to a reader that is gone, fails with one line', async () => {
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

test('a killed export leaves only a .part file, which import refuses; an interrupted one leaves nothing', async () => {
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

test('a killed import leaves no rows, and another import works', async () => {
  const bytes = await readFile(file);
  const target = await emptyDatabase();
  const child = spawn(process.execPath, [CLI, 'import', '--from', '-'], {
    cwd: home,
    env: { PATH: process.env.PATH, ...target.ownerSettings },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // The import has received all but the last 100 bytes, and waits for them.
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
