import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { readConfig } from '../../src/config.js';
import { dataSourceOptions, openCurrentDatabase } from '../../src/platform/database/data-source.js';
import { StartupError } from '../../src/platform/errors/startup-error.js';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.js';

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

test('a broken database is refused', async () => {
  await writeFile(join(dataDir, 'postgres', 'global', 'pg_control'), 'not a control file');
  const message = expect.stringMatching(
    /^The embedded database in DATA_DIR '.+' does not open \(.+\)\. If its disk is full, .+ Else restore it, set DATA_DIR to another /,
  ) as string;
  await expect(open()).rejects.toMatchObject({ name: StartupError.name, message });
});
