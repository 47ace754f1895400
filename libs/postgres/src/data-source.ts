import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { readdir } from 'node:fs/promises';
import type { ClientBase } from 'pg';
import type { DataSource, MigrationInterface } from 'typeorm';
import { openEngine } from '#embedded-postgres';
import { StartupError } from '#runtime';
import { Application, Config, type MigrationSource } from '#settings';
import { checkConnection } from './connection-check.js';
import {
  ANSWER_GRACE_MS,
  directly,
  type PostgresConfig,
  prepareSession,
  serverConnectionSettings,
} from './connection-settings.js';
import type { SessionFacts } from './connections/service-pool.js';
import { Database } from './database.js';
import { findingsOf } from './schema/findings.js';
import { migrate } from './schema/migrate.js';
import { type PostgresOptions, ServiceDataSource } from './service-data-source.js';

/** Options of the data source. They carry `config` to `openDataSource`. */
export type DatabaseOptions = PostgresOptions & { readonly config: PostgresConfig };

/** The options of the data source, for the application and commands. Throws StartupError when migrations cannot be loaded. */
export async function dataSourceOptions(
  config: PostgresConfig,
  migrations: readonly MigrationSource[],
): Promise<DatabaseOptions> {
  return {
    type: 'postgres',
    config,
    migrations: await loadMigrations(migrations),
    migrationsTableName: 'schema_migration',
    synchronize: false,
    installExtensions: false,
    // The pool replaces an idle connection that breaks; nobody needs to act.
    poolErrorHandler: () => undefined,
  };
}

/** Opens also the embedded engine if DATABASE_URL is not set; `destroy` closes both. */
async function openDataSource(options: DatabaseOptions): Promise<ServiceDataSource> {
  const { config } = options;
  await checkConnection(config);
  const engine = config.databaseUrl === undefined ? await openEngine(config.dataDir) : undefined;
  const onConnect = (client: ClientBase): Promise<SessionFacts> => prepareSession(client, true);
  const extra = engine
    ? { ...engine.poolOptions, connectionTimeoutMillis: config.acquireTimeoutMs, onConnect }
    : { ...(options.extra as object), ...serverConnectionSettings(config) };
  try {
    return await new ServiceDataSource({ ...options, extra }, engine).initialize();
  } catch (error) {
    await engine?.close();
    throw error;
  }
}

/**
 * Opens the database for a command. Uses DATABASE_DIRECT_URL if it is set, because migrations need a session of
 * their own. Does not wait for an unreachable database. `destroy` closes the database.
 *
 * @param isCurrent true: as `openCurrentDatabase` does; false: whatever its schema version
 * @throws StartupError when the database cannot be reached or opened
 */
export async function openDatabase(
  config: PostgresConfig,
  migrations: readonly MigrationSource[],
  isCurrent = false,
  more: Partial<DatabaseOptions> = {},
): Promise<DataSource> {
  const options = { ...more, ...(await dataSourceOptions({ ...directly(config), startTimeoutMs: 0 }, migrations)) };
  return isCurrent ? openCurrentDatabase(options) : openDataSource(options);
}

/**
 * Opens the database for the application, with a schema that this version can run on. MIGRATE_ON_START decides whether
 * pending migrations are applied or refused. `destroy` closes the database.
 *
 * @throws StartupError when the database cannot be opened, its schema is outdated, or newer and not compatible, or for a fault that
 *   `findingsOf` finds
 */
export async function openCurrentDatabase(options: DatabaseOptions): Promise<DataSource> {
  const dataSource = await openDataSource(options);
  try {
    const { migrateOnStart: isWanted, databaseUrl, product } = options.config;
    if (isWanted ?? databaseUrl === undefined) await migrateOnStart(dataSource, options);
    const { fault, warnings } = await findingsOf(dataSource, product);
    if (fault !== undefined) throw fault;
    for (const warning of warnings) dataSource.warnings.add(warning);
    return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}

async function migrateOnStart(dataSource: DataSource, { config, ...options }: DatabaseOptions): Promise<unknown> {
  // The embedded engine has one session. On a server, migrations need a session of their own and more time than requests.
  if (config.databaseUrl === undefined) return migrate(dataSource);
  const direct = await openDataSource({ ...options, config: directly(config), entities: [], extra: undefined });
  return migrate(direct).finally(() => direct.destroy());
}

type MigrationClass = new () => MigrationInterface;

/** Loads the classes of migrations. Throws StartupError for a directory that has none. */
export async function loadMigrations(sources: readonly MigrationSource[]): Promise<MigrationClass[]> {
  const loaded = await Promise.all(
    sources.map(async (source) => (source instanceof URL ? classesIn(source) : [source])),
  );
  return loaded.flat();
}

async function classesIn(url: URL): Promise<MigrationClass[]> {
  // Without the slash, file names would be resolved against the parent directory.
  const directory = new URL(url.href.replace(/\/?$/, '/'));
  const files = (await readdir(directory).catch(() => [])).filter((file) => /^\d{13}-[a-z0-9-]+\.(js|ts)$/.test(file));
  if (files.length === 0) {
    throw new StartupError(
      `${directory.href} has no migrations: compiled files with names such as 1795219200000-create-orders.js.`,
    );
  }
  const modules = await Promise.all(
    files.sort().map(async (file) => (await import(new URL(file, directory).href)) as Record<string, unknown>),
  );
  return modules.flatMap((exports) => Object.values(exports)) as MigrationClass[];
}

/** Token of the array of all migrations: those of the application and of the platform. */
export const MIGRATIONS = Symbol('MIGRATIONS');

/**
 * The database for every module: `Database`, TypeORM's `DataSource` and `EntityManager`, and repositories through
 * `TypeOrmModule.forFeature`. The database is opened and its schema checked before any class that injects one of these is
 * created. It is closed with the application.
 */
@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [Config, Application, MIGRATIONS],
      useFactory: async (config: PostgresConfig, { typeorm }: Application, migrations: MigrationSource[]) => ({
        ...typeorm,
        ...(await dataSourceOptions(config, migrations)),
        extra: { answerTimeoutMs: config.statementTimeoutMs + ANSWER_GRACE_MS },
        autoLoadEntities: true,
        // `checkConnection` waits. What fails after it ends the process; the process manager starts it again.
        toRetry: () => false,
      }),
      dataSourceFactory: (options) => openCurrentDatabase(options as DatabaseOptions),
    }),
  ],
  providers: [Database],
  exports: [Database],
})
export class DatabaseModule {}
