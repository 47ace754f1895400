import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEngine } from '#embedded-postgres';
import { PET_STORE } from '../../src/app.description.js';
import { migrateDatabase } from '../kit/test-database.js';
import { atTearDown, HANDED_OVER } from './engines.js';

/** Creates two directories of the embedded engine, one without a schema and one migrated; each test file copies them. */
export async function setUp(): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'petstore-test-embedded-'));
  atTearDown(() => rm(home, { recursive: true, force: true }));
  const empty = (process.env[HANDED_OVER.emptyTemplateDirectory] = join(home, 'empty'));
  const migrated = (process.env[HANDED_OVER.templateDirectory] = join(home, 'migrated'));
  await (await openEngine(empty)).close();
  await cp(empty, migrated, { recursive: true });
  await migrateDatabase(PET_STORE, { DATA_DIR: migrated });
}
