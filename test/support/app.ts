import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { AppModule } from '../../src/app.module.js';
import { APPLICATION_OPTIONS, setUpApplication } from '../../src/app.setup.js';
import { type Config, readConfig } from '../../src/config.js';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { Clock } from '../../src/platform/clock.js';
import { openDatabase } from '../../src/platform/database/data-source.js';
import { Database } from '../../src/platform/database/database.js';
import { PlatformExpressAdapter } from '../../src/platform/server/express-adapter.js';
import { LOGGER } from '../../src/platform/logging/logger.js';
import { createTestDatabase, engine, type TestDatabase } from './database.js';
import { FAST_PATHS_SETTING } from './fast-paths.js';
import { HttpClient } from './http-client.js';
import { MemoryLog } from './memory-log.js';
import { TestClock } from './test-clock.js';

/** The service as main.ts starts it, with its own database, on a free port. */
export interface TestApp {
  readonly nest: INestApplication;
  readonly config: Config;
  readonly database: TestDatabase;
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly port: number;
  /** The secret of a key with the default scopes. */
  readonly apiKey: string;
  /** Sends requests with that key. */
  readonly client: HttpClient;
  /** The clock of the service. */
  readonly clock: TestClock;
  /** The log of the service. */
  readonly log: MemoryLog;
  /**
   * Runs SQL on the primary; each row is an array of columns. On PostgreSQL it runs as the owner of the schema, on
   * connections beside the service's, whose own role can neither create nor truncate a table.
   */
  sql(text: string, values?: unknown[]): Promise<unknown[][]>;
  /** Applies a migration of a module that the test brings, as the owner of the schema. */
  migrate(migration: MigrationInterface): Promise<void>;
  /** Stops the service. Throws when its log contains a secret. */
  close(): Promise<void>;
}

export interface TestAppOptions {
  /**
   * Settings besides those of the database, as environment variables. FAST_PATHS is that of the test run by default.
   */
  settings?: Record<string, string>;
  /** Features besides those of the service. */
  modules?: (Type | DynamicModule)[];
  /** A database shared with another application; `close` does not drop it. */
  database?: TestDatabase;
  /** Called with the application before it listens: what a module's documentation puts into main.ts. */
  setUp?: (nest: INestApplication) => void;
}

/** Starts the application as main.ts does. Close it in `afterAll`. */
export async function createTestApp({
  settings = {},
  modules = [],
  setUp,
  ...options
}: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase());
  const config = readConfig({
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'debug',
    // By then the test clients' connections are idle, so waiting would only slow the tests.
    SHUTDOWN_LINGER_MS: '0',
    ...FAST_PATHS_SETTING,
    ...database.settings,
    ...settings,
  });
  const clock = new TestClock();
  const log = new MemoryLog(config.logLevel);
  const testingModule = await Test.createTestingModule({ imports: [AppModule.forRoot(config, modules)] })
    .overrideProvider(Clock)
    .useValue(clock)
    .overrideProvider(LOGGER)
    .useValue(log.logger)
    .compile();
  const nest = testingModule.createNestApplication(new PlatformExpressAdapter(config), APPLICATION_OPTIONS);
  try {
    setUpApplication(nest);
    setUp?.(nest);
    await nest.listen(config.port, config.host);
  } catch (error) {
    // What it has opened before it failed would keep Jest running.
    await nest.close().catch(() => undefined);
    if (!options.database) await database.drop();
    throw error;
  }

  const { port } = (nest.getHttpServer() as Server).address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const { secret } = await nest.get(ApiKeysService).create({ client: 'test-client' });
  const owner = ownerOf(database, nest);
  return {
    nest,
    config,
    database,
    origin,
    port,
    apiKey: secret,
    client: new HttpClient(origin, secret),
    clock,
    log,
    // A statement without a name is not prepared.
    sql: async (text, values = []) => (await owner.database()).write({ name: '', text }, values),
    migrate: async (migration) => {
      await (
        await owner.database()
      ).transaction(async ({ manager }) => {
        await migration.up(manager.queryRunner as QueryRunner);
      });
    },
    close: async () => {
      await nest.close();
      await owner.close();
      if (!options.database) await database.drop();
      log.assertNoSecrets([config.bootstrapApiKey, config.redisUrl, config.databaseUrl]);
    },
  };
}

/**
 * The database as the role that owns its schema; connects at the first use. The embedded engine has one connection and
 * one role, so there it is the service's own.
 */
function ownerOf(
  { ownerSettings }: TestDatabase,
  nest: INestApplication,
): { database(): Promise<Database>; close(): Promise<void> } {
  if (engine === 'embedded') {
    return { database: () => Promise.resolve(nest.get(Database)), close: () => Promise.resolve() };
  }
  const config = readConfig(ownerSettings);
  let dataSource: DataSource | undefined;
  let opening: Promise<Database> | undefined;
  const open = async (): Promise<Database> => {
    dataSource = await openDatabase(config);
    return new Database(dataSource, config);
  };
  return {
    database: () => (opening ??= open()),
    close: async () => {
      await opening;
      await dataSource?.destroy();
    },
  };
}
