import { Logger } from '@nestjs/common';
import type { DataSource, EntityTarget, ObjectLiteral } from 'typeorm';
import type { Config } from '../../config.js';
import type { MigrationSource } from '../application.js';
import { checkConnection } from './connection-check.js';
import { answerTimeoutMs, embeddedConnectionSettings, serverConnectionSettings } from './connection-settings.js';
import { type DatabaseOptions, dataSourceOptions } from './data-source-options.js';
import { directly, directSetting, type PrimarySetting } from './direct-connection.js';
import { EmbeddedEngine } from './embedded/embedded-engine.js';
import { OwningDataSource } from './owning-data-source.js';
import { migrate } from './schema/migrate.js';
import { assertSchemaIsUsable } from './schema/schema-check.js';

const log = new Logger('Migrations');

/**
 * Opens a data source, and the embedded engine if DATABASE_URL is not set. `destroy` closes both.
 *
 * @param setting the setting from which `databaseUrl` was taken
 * @throws StartupError when the database cannot be reached or opened
 */
export async function openDataSource(options: DatabaseOptions, setting?: PrimarySetting): Promise<DataSource> {
  const { config } = options;
  const { databaseUrl } = config;
  await checkConnection(config, setting);
  const engine = databaseUrl === undefined ? await EmbeddedEngine.open(config.dataDir) : undefined;
  const extra =
    databaseUrl === undefined
      ? { ...embeddedConnectionSettings(config), ...(engine && { stream: engine.createStream }) }
      : serverConnectionSettings(config, databaseUrl, config.databaseDirectUrl === undefined);
  try {
    return await new OwningDataSource({ ...options, extra }, engine, answerTimeoutMs(config)).initialize();
  } catch (error) {
    await engine?.close();
    throw error;
  }
}

/**
 * Opens the database for a command, whatever its schema version. Uses DATABASE_DIRECT_URL if it is set, because migrations
 * need a session of their own. `destroy` closes the database.
 *
 * @throws StartupError when the database cannot be reached or opened
 */
export async function openDatabase(
  config: Config,
  {
    entities = [],
    migrations,
  }: { entities?: EntityTarget<ObjectLiteral>[]; migrations?: readonly MigrationSource[] } = {},
): Promise<DataSource> {
  const options = await dataSourceOptions(directly(config), migrations);
  return openDataSource({ ...options, entities: entities as DatabaseOptions['entities'] }, directSetting(config));
}

/**
 * Opens the database for the application, with a schema that this version can run on. MIGRATE_ON_START decides whether
 * pending migrations are applied or refused. `destroy` closes the database.
 *
 * @param setting the setting from which `databaseUrl` was taken
 * @throws StartupError when the database cannot be reached or opened, its schema is outdated, or it is newer and not
 * backward compatible
 */
export async function openCurrentDatabase(options: DatabaseOptions, setting?: PrimarySetting): Promise<DataSource> {
  const dataSource = await openDataSource(options, setting);
  try {
    if (options.config.migrateOnStart) await migrateOnStart(dataSource, options);
    await assertSchemaIsUsable(dataSource);
    return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}

async function migrateOnStart(dataSource: DataSource, options: DatabaseOptions): Promise<void> {
  const isDirect = options.config.databaseDirectUrl === undefined;
  const direct = isDirect
    ? dataSource
    : await openDataSource({ ...options, config: directly(options.config), entities: [] }, 'DATABASE_DIRECT_URL');
  try {
    await migrate(direct, {
      onLockRetry: (name, attempt) => log.warn(`Migration ${name} waits for a lock (attempt ${attempt}).`),
    });
  } finally {
    if (!isDirect) await direct.destroy();
  }
}
