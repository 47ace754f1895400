import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../../src/config.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { migrate } from '../../src/platform/database/schema/migrate.js';
import { atTearDown, HANDED_OVER } from './engines.js';

/** Makes a migrated DATA_DIR of the embedded engine; each test file copies it. */
export async function setUp(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'petstore-test-embedded-'));
  atTearDown(() => rm(directory, { recursive: true, force: true }));
  process.env[HANDED_OVER.templateDirectory] = directory;
  const dataSource = await openDatabase(readConfig({ DATA_DIR: directory }));
  await migrate(dataSource);
  await dataSource.destroy();
}
