import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { DataSource } from 'typeorm';
import { readConfig } from '../../src/config.js';
import { dataSourceOptions, openCurrentDatabase } from '../../src/platform/database/data-source.js';
import { StartupError } from '../../src/platform/errors/startup-error.js';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
let dataDir: string;
const children: ChildProcess[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  dataDir = database.settings.DATA_DIR ?? '';
});

afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
  await database.drop();
});

async function open(directory = dataDir): Promise<DataSource> {
  return openCurrentDatabase(await dataSourceOptions(readConfig({ DATA_DIR: directory })));
}

function startProcess(): ChildProcess {
  const support = new URL('../support/', import.meta.url);
  const args = [
    '--import',
    new URL('register-typescript.js', support).href,
    new URL('embedded-process.ts', support).pathname,
  ];
  const child = spawn(process.execPath, args, { env: { DATA_DIR: dataDir }, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
}

/** Collects the output of a process until it has this many lines. */
async function linesOf(child: ChildProcess, count: number): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(line);
    if (lines.length >= count) break;
  }
  return lines;
}

/** Sends SIGKILL, which the process cannot handle. */
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGKILL');
  await ended;
}

test('the DATA_DIR of a process that SIGKILL ended opens at once, with every acknowledged animal', async () => {
  const child = startProcess();
  const [, ...ids] = await linesOf(child, 200);
  await kill(child);

  const dataSource = await open();
  const rows: { id: string }[] = await dataSource.query('SELECT id FROM pet ORDER BY id');
  await dataSource.destroy();
  expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
  expect((await readdir(dataDir)).filter((name) => name !== 'postgres')).toEqual([]);
});

test('a missing DATA_DIR is created, and remains of a killed first start are removed', async () => {
  const empty = await createEmptyTestDatabase();
  const nested = join(empty.settings.DATA_DIR ?? '', 'a', 'b');
  await mkdir(join(nested, 'initdb-killed', 'base'), { recursive: true });
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
    const error = await open(directory).catch((refusal: Error) => refusal);
    expect(error).toBeInstanceOf(StartupError);
    expect((error as Error).message).toMatch(
      /^DATA_DIR '.+' cannot be used \(.*E[A-Z]+: .+\)\. Set DATA_DIR to a directory that can be written, or DATABASE_URL\.$/,
    );
  }
});

test('a broken database is refused', async () => {
  await writeFile(join(dataDir, 'postgres', 'global', 'pg_control'), 'not a control file');
  const message = expect.stringMatching(
    /^The embedded database in DATA_DIR '.+' does not open \(.+\)\. If its disk is full, .+ Else restore it, set DATA_DIR to another /,
  ) as string;
  await expect(open()).rejects.toMatchObject({ name: StartupError.name, message });
});
