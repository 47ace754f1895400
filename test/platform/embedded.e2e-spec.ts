import { mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { StartupError } from '#errors';
import { readConfig } from '../../src/settings.js';
import { dataSourceOptions, openCurrentDatabase } from '../../libs/postgres/src/data-source.js';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';
import { giveAway } from '../support/foreign-files.js';

let database: TestDatabase;
let dataDir: string;

beforeEach(async () => {
  database = await createTestDatabase();
  dataDir = database.settings.DATA_DIR ?? '';
});

afterEach(() => database.drop());

async function open(directory = dataDir): Promise<DataSource> {
  return openCurrentDatabase(await dataSourceOptions(readConfig({ DATA_DIR: directory })));
}

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

test('a database of another user is refused: its owner could not open the files that this process would make', async () => {
  const cluster = join(dataDir, 'postgres');
  await giveAway(cluster);
  const before = await readdir(dataDir);
  const { uid } = await stat(cluster);
  await expect(open()).rejects.toMatchObject({
    name: StartupError.name,
    message: `The database '${cluster}' belongs to the user with the id ${uid}. Run this as that user.`,
  });
  expect(await readdir(dataDir)).toEqual(before);
});

test('a broken database is refused, and a file named that cannot be read', async () => {
  const file = join(dataDir, 'postgres', 'global', 'pg_control');
  await writeFile(file, 'not a control file');
  const message = expect.stringMatching(
    /^The embedded database in DATA_DIR '.+' does not open \(.+\)\. If its disk is full, .+ only if neither helps\.$/,
  ) as string;
  await expect(open()).rejects.toMatchObject({ name: StartupError.name, message });
  // Tests may run as root, who may read every file but none behind this link.
  await rm(file);
  await symlink('nowhere', file);
  await expect(open()).rejects.toThrow(`This user may not read and write '${file}': give it to this user (chown).`);
});
