import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '#postgres';
import { MIGRATIONS, readConfig } from '../../../test/support/config.js';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../../../test/support/database.js';
import { type Outcome, petstoreCommand } from '../../../test/operation/support/petstore-command.js';

/*
 * `export` and `import` as processes. libs/transfer/test/transfer tests which data they move.
 */

import.meta.jest.setTimeout(240_000);

const CLI = join(import.meta.dirname, '../../../dist/src/cli.js');
/** Enough for several frames, so that a command can be stopped between two of them. */
const PETS = 60_000;

let source: TestDatabase;
let home: string;
/** The file of a complete export. */
let file: string;
const databases: TestDatabase[] = [];

const petstore = ({ ownerSettings }: TestDatabase, ...args: string[]): Promise<Outcome> =>
  petstoreCommand(home, ownerSettings, ...args);

async function query<Row>(database: TestDatabase, statement: string): Promise<Row[]> {
  const dataSource = await openDatabase(readConfig(database.ownerSettings), MIGRATIONS);
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
  await query(source, `INSERT INTO pet (name, category_id) SELECT 'Rex ' || n, n FROM generate_series(1, ${PETS}) n`);
  file = join(home, 'all');
  expect(await petstore(source, 'export', '--to', 'all')).toMatchObject({ code: 0, stderr: '' });
});
afterAll(async () => {
  for (const database of databases) await database.drop();
  await rm(home, { recursive: true, force: true });
});

test('all pets are moved from one engine to the other and back, with a file and through pipes', async () => {
  // The import creates an embedded database here.
  const directory = join(home, 'data');
  const settings = { DATA_DIR: directory };
  const other: TestDatabase = { settings, ownerSettings: settings, drop: () => Promise.resolve() };
  const there = await petstore(other, 'import', '--from', 'all');
  expect([there.code, there.stdout, there.stderr]).toEqual([
    0,
    'Imported 60000 rows.\n',
    `Making a new database in DATA_DIR '${directory}'.\n`,
  ]);
  const back = `env -u DATABASE_URL DATA_DIR=${directory} "$0" "$1" export --to - | gzip >back.gz; gunzip -c back.gz | "$0" "$1" import --from -`;
  const target = await emptyDatabase();
  const child = spawn('/bin/sh', ['-c', back, process.execPath, CLI], {
    cwd: home,
    env: { PATH: process.env.PATH, ...target.ownerSettings },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  expect((await once(child, 'exit'))[0]).toBe(0);
  const content = await query(target, CONTENT);
  expect(content).toEqual([{ count: PETS, md5: expect.any(String) as string, next: String(PETS + 1) }]);
  expect(await query(source, CONTENT)).toEqual(content);
});

test('only its owner may read an export, no file is replaced, and a failed export leaves none', async () => {
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe('600');
  await writeFile(join(home, 'old'), 'keep');
  expect(await petstore(source, 'export', '--to', 'old')).toMatchObject({
    code: 1,
    stderr: "petstore: old cannot be written: EEXIST: file already exists, open 'old'.\n",
  });
  expect(await readFile(join(home, 'old'), 'utf8')).toBe('keep');
  // This export fails after its file is made, because the database has no schema.
  const bare = await createEmptyTestDatabase();
  databases.push(bare);
  expect(await petstore(bare, 'export', '--to', 'new')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'petstore: The database has no schema, so there is nothing to export.\n',
  });
  expect((await readdir(home)).includes('new')).toBe(false);
});

test.each([
  [['export', '--to', 'none/x'], /^petstore: none\/x cannot be written: ENOENT: .+\n$/],
  [['import', '--from', 'none'], /^petstore: none cannot be read: ENOENT: .+\n$/],
  [['import', '--from', '.'], /^petstore: \. cannot be read: EISDIR: .+\n$/],
])('%j fails with one line', async (args, message) => {
  expect(await petstore(await emptyDatabase(), ...args)).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(message) as string,
  });
});

test('an export to a full disk, or to a reader that is gone, fails with one line', async () => {
  for (const [stdout, message] of [
    [openSync('/dev/full', 'w'), 'ENOSPC'],
    ['pipe', 'EPIPE'],
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
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(new RegExp(`^petstore: Standard output cannot be written: .*${message}.*\\n$`)),
    ]);
  }
});
