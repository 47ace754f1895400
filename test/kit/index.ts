import type { Type } from '@nestjs/common';
import { definitionOf } from '../../libs/service/src/service.module.js';
import { createEmptyDatabase, migrateDatabase } from './test-database.js';
import { dropsDatabase, type StartOptions, startTestApp, type TestApp } from './start-test-app.js';

/*
 * `petstore-service/testing`: the real application for the tests of a module in a separate package, over HTTP and on a real
 * database. It works with any test runner, and needs `@nestjs/testing`.
 */

export type { HttpAnswer } from '../support/http-client.js';
export type { TestApp } from './start-test-app.js';

/** Additions of a test to the service, and its database server. */
interface TestAppOptions extends StartOptions {
  /**
   * URI of a PostgreSQL server, as a superuser: the application gets a new database there, and a role that owns nothing, as
   * in production. Undefined for the embedded engine, in a temporary directory.
   */
  readonly databaseUrl?: string | undefined;
}

/**
 * Starts the application as `startService` does, on a new database with all migrations, and on a free port. Close it after
 * the tests. A start takes about two seconds on either engine.
 *
 * @example const app = await createTestApp(AppModule);
 * @throws StartupError when the application does not start
 */
export async function createTestApp(app: Type, { databaseUrl, ...options }: TestAppOptions = {}): Promise<TestApp> {
  return dropsDatabase(await createEmptyDatabase(databaseUrl), async (database) => {
    // The start migrates the embedded engine: opening it once more before would take another second.
    if (databaseUrl !== undefined) await migrateDatabase(definitionOf(app), database.ownerSettings);
    return startTestApp(app, database, options);
  });
}
