import type { INestApplication, Type } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { ApiKeysService, type NewApiKey } from '#access';
import { LOGGER } from '#ops';
import { Database, openDatabase } from '#postgres';
import { Clock } from '#runtime';
import { Config } from '#settings';
import { type CoreConfig, readConfig, type ServiceOptions } from '#service';
import { definitionOf } from '../../libs/service/src/service.module.js';
import { create } from '../../libs/service/src/start-service.js';
import { APPLICATION_OPTIONS } from '../../libs/service/src/set-up.js';
import type { LoggableError } from '../../libs/ops/src/loggable.js';
import { type HttpAnswer, HttpClient } from '../support/http-client.js';
import { MemoryLog } from '../support/memory-log.js';
import { TestClock } from '../support/test-clock.js';
import type { TestDatabase } from './test-database.js';

/** The service as `startService` starts it, with its own database, on a free port. */
export interface TestApp {
  readonly nest: INestApplication;
  readonly config: CoreConfig;
  readonly database: TestDatabase;
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly port: number;
  /** The secret of a key with the default scopes. */
  readonly apiKey: string;
  /**
   * Sends requests with that key. The error behind a response 500 is printed to standard error with its stack, unless
   * the call says `expects500`.
   */
  readonly client: HttpClient;
  /**
   * The clock of the service, of API keys too. It does not change `now()` in SQL, which is the time of the database: pass `clock.now()`
   * where a test must travel. Idempotency keys are kept for 24 h of the database.
   */
  readonly clock: TestClock;
  /** The log of the service. */
  readonly log: MemoryLog;
  /** Makes an API key; returns its secret. Without `client` it is the client of `apiKey`, without `scopes` it has the default ones. */
  createApiKey(key: Partial<NewApiKey>): Promise<string>;
  /**
   * Runs SQL on the primary; each row is an array of columns. On PostgreSQL it runs as the owner of the schema, on
   * connections beside the service's, whose own role can neither create nor truncate a table.
   */
  sql(text: string, values?: unknown[]): Promise<unknown[][]>;
  /**
   * The SQL that would turn the tables of the migrations into those of the entities, without what only one of them has. Empty if both
   * agree.
   */
  schemaDifferences(): Promise<string[]>;
  /** Applies a migration that the application does not have, as the owner of the schema. */
  migrate(migration: MigrationInterface): Promise<void>;
  /** Stops the service, and drops its database unless the test created it. Throws when the log contains a secret. */
  close(): Promise<void>;
}

/** Additions of a test to the service. */
export interface StartOptions extends ServiceOptions {
  /** Settings besides those of the database, as environment variables. The environment of the process is not read. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Members of `CoreConfig` that are no settings, such as time limits that a test shortens. */
  readonly limits?: Partial<CoreConfig>;
  /**
   * Replaces providers, guards, pipes or modules before the application is made, as Nest's own tests do:
   * `(module) => module.overrideProvider(Payments).useValue(fake)`.
   */
  readonly override?: (module: TestingModuleBuilder) => unknown;
}

/** Starts the application on a database with the current schema, or an embedded one that it may migrate. */
export async function startTestApp(
  app: Type,
  database: TestDatabase,
  { settings = {}, limits = {}, setUp, override }: StartOptions,
): Promise<TestApp> {
  const definition = definitionOf(app);
  const read = await readConfig(definition, {
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'debug',
    ...database.settings,
    ...settings,
  });
  // At the end the test clients' connections are idle, so waiting would only slow the tests. The database is there; a start that fails
  // for another reason must not wait for one that the test drops.
  const own = { shutdownLingerMs: 0, startTimeoutMs: 0, ...limits };
  const config = Object.freeze(Object.assign(new Config(), read, own));
  const clock = new TestClock();
  const log = new MemoryLog(config.logLevel);
  const nest = await create(app, config, { setUp }, async (module, adapter) => {
    const builder = Test.createTestingModule({ imports: [module] })
      .overrideProvider(Clock)
      .useValue(clock)
      .overrideProvider(LOGGER)
      .useValue(log.logger);
    override?.(builder);
    return (await builder.compile()).createNestApplication(adapter, APPLICATION_OPTIONS);
  });
  try {
    await nest.listen(config.port, config.host);
  } catch (error) {
    // Resources that the failed start has opened would keep the process running.
    await nest.close().catch(() => undefined);
    throw error;
  }

  const { port } = (nest.getHttpServer() as Server).address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const keys = nest.get(ApiKeysService);
  const { secret } = await keys.create({ client: 'test-client' });
  const owner = ownerOf(await readConfig(definition, database.ownerSettings), nest);
  return {
    nest,
    config,
    database,
    origin,
    port,
    apiKey: secret,
    client: new HttpClient(origin, secret, (request, answer) => tell(`${request} got 500${causeOf(answer, log)}`)),
    clock,
    log,
    createApiKey: async (key) => (await keys.create({ client: 'test-client', ...key })).secret,
    // A statement without a name is not prepared.
    sql: async (text, values = []) => (await owner.database()).write({ name: '', text }, values),
    schemaDifferences: () => schemaDifferences(nest.get(DataSource)),
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
      log.assertNoSecrets([config.bootstrapApiKey, config.metricsToken, settings.REDIS_URL, config.databaseUrl]);
    },
  };
}

/** See `TestApp.schemaDifferences`. */
export async function schemaDifferences(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}

/** The application with a database that is dropped when the application ends, or when it fails to start. */
export async function dropsDatabase(
  database: TestDatabase,
  start: (database: TestDatabase) => Promise<TestApp>,
): Promise<TestApp> {
  try {
    const app = await start(database);
    return { ...app, close: () => app.close().finally(() => database.drop()) };
  } catch (error) {
    await database.drop();
    throw error;
  }
}

/** The logged error of a response, with the stacks of its causes. It is logged before the response is sent. */
function causeOf({ headers }: HttpAnswer, log: MemoryLog): string {
  const requestId = headers['x-request-id'];
  const line = log.lines.findLast((one) => one.requestId === requestId && one.error !== undefined);
  if (line === undefined) return '; its log line was left out by LOG_LEVEL.';
  const stacks: unknown[] = [];
  for (let error = line.error as LoggableError | undefined; error; error = error.cause as typeof error) {
    stacks.push(error.stack ?? error.message);
  }
  return ` because of\n${stacks.join('\ncaused by ')}`;
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

/**
 * The database as the role that owns its schema; connects at the first use. The embedded engine has one connection and
 * one role, so there it is the service's own.
 */
function ownerOf(
  config: CoreConfig,
  nest: INestApplication,
): { database(): Promise<Database>; close(): Promise<void> } {
  if (config.databaseUrl === undefined) {
    return { database: () => Promise.resolve(nest.get(Database)), close: () => Promise.resolve() };
  }
  let dataSource: DataSource | undefined;
  let opening: Promise<Database> | undefined;
  const open = async (): Promise<Database> => {
    dataSource = await openDatabase(config, []);
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
