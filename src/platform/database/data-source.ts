import { Logger } from '@nestjs/common';
import type { PoolConfig } from 'pg';
import type { DataSource, EntityTarget, ObjectLiteral } from 'typeorm';
import type { Config } from '../../config.js';
import type { MigrationSource } from '../application.js';
import { checkConnection } from './connection-check.js';
import { answerTimeoutMs } from './connection-settings.js';
import { type DatabaseOptions, dataSourceOptions } from './data-source-options.js';
import { EmbeddedEngine } from './embedded/embedded-engine.js';
import { OwningDataSource } from './owning-data-source.js';
import { migrate } from './schema/migrate.js';
import { assertSchemaIsUsable } from './schema/schema-check.js';

const log = new Logger('Migrations');

/**
 * Opens a data source, and the embedded engine when DATABASE_URL is not set. `destroy` closes both.
 *
 * @throws StartupError when the database cannot be reached or opened
 */
export async function openDataSource(options: DatabaseOptions): Promise<DataSource> {
  const { config } = options;
  await checkConnection(config);
  const engine = config.databaseUrl === undefined ? await EmbeddedEngine.open(config.dataDir) : undefined;
  const extra = { ...(options.extra as PoolConfig), ...(engine && { stream: engine.createStream }) };
  try {
    return await new OwningDataSource({ ...options, extra }, engine, answerTimeoutMs(config)).initialize();
  } catch (error) {
    await engine?.close();
    throw error;
  }
}

/**
 * Opens the database for a command, with any schema. `destroy` closes it.
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
  const options = await dataSourceOptions(config, migrations);
  return openDataSource({ ...options, entities: entities as DatabaseOptions['entities'] });
}

/**
 * Opens the database for the application, with a schema that this version can run on. MIGRATE_ON_START decides whether
 * pending migrations are applied or refused. `destroy` closes the database.
 *
 * @throws StartupError when the database cannot be reached or opened, its schema is outdated, or it is newer and not
 * backward compatible
 */
export async function openCurrentDatabase(options: DatabaseOptions): Promise<DataSource> {
  const dataSource = await openDataSource(options);
  try {
    if (options.config.migrateOnStart) {
      await migrate(dataSource, {
        onLockRetry: (name, attempt) => log.warn(`Migration ${name} waits for a lock (attempt ${attempt}).`),
      });
    }
    await assertSchemaIsUsable(dataSource);
    return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}
