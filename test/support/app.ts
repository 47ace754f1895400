import { dropsDatabase, type StartOptions, startTestApp, type TestApp } from '../kit/start-test-app.js';
import { migrateDatabase, type TestDatabase } from '../kit/test-database.js';
import { createTestDatabase } from './database.js';
import { FAST_PATHS_SETTING } from './fast-paths.js';

export type { TestApp } from '../kit/start-test-app.js';

/** Additions of a test to the service. By default FAST_PATHS is that of the test run. */
export interface TestAppOptions extends StartOptions {
  /** A database shared with another application; `close` does not drop it. */
  readonly database?: TestDatabase;
}

/** Starts the application as main.ts does, on the engine of the test run. Close it in `afterAll`. */
export async function createTestApp({ database, settings, ...others }: TestAppOptions = {}): Promise<TestApp> {
  const options = { ...others, settings: { ...FAST_PATHS_SETTING, ...settings } };
  if (database !== undefined) return startTestApp(database, options);
  return dropsDatabase(await createTestDatabase(), async (own) => {
    // A database of the tests has the migrations of the service. Only its owner may add others.
    const { migrations = [] } = options;
    if (migrations.length > 0 && own.settings.DATABASE_URL !== undefined)
      await migrateDatabase(own.ownerSettings, migrations);
    return startTestApp(own, options);
  });
}
