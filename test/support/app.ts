import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppModule } from '../../src/app.module.js';
import { APPLICATION_OPTIONS, setUpApplication } from '../../src/app.setup.js';
import { type Config, readConfig } from '../../src/config.js';
import { ApiKeysService } from '../../src/platform/api-keys/api-keys.service.js';
import { Clock } from '../../src/platform/clock.js';
import { Database } from '../../src/platform/database/database.js';
import { PlatformExpressAdapter } from '../../src/platform/server/express-adapter.js';
import { LOGGER } from '../../src/platform/observability/logger.js';
import { createTestDatabase, type TestDatabase } from './database.js';
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
  /** Runs SQL on the primary; each row is an array of columns. */
  sql(text: string, values?: unknown[]): Promise<unknown[][]>;
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
}

/** Starts the application as main.ts does. Close it in `afterAll`. */
export async function createTestApp({
  settings = {},
  modules = [],
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
  setUpApplication(nest);
  await nest.listen(config.port, config.host);

  const { port } = (nest.getHttpServer() as Server).address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const { secret } = await nest.get(ApiKeysService).create({ client: 'test-client' });
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
    sql: (text, values = []) => nest.get(Database).write({ name: '', text }, values),
    close: async () => {
      await nest.close();
      if (!options.database) await database.drop();
      log.assertNoSecrets([config.bootstrapApiKey, config.redisUrl, config.databaseUrl]);
    },
  };
}
