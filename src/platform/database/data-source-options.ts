import type { DataSourceOptions } from 'typeorm';
import pg from 'pg';
import type { Config } from '../../config.js';
import type { MigrationSource } from '../application.js';
import { ServicePool } from './connections/service-pool.js';
import { loadMigrations } from './schema/migration-files.js';

/** Options of the data source. They carry `config` to `openDataSource`. */
export type DatabaseOptions = Extract<DataSourceOptions, { type: 'postgres' }> & { readonly config: Config };

/**
 * The options of the data source, the same for the application, the command line and the tests.
 *
 * @param migrations the application's migrations, in addition to those in `migrations/`
 * @throws StartupError when migrations cannot be loaded
 */
export async function dataSourceOptions(
  config: Config,
  migrations: readonly MigrationSource[] = [],
): Promise<DatabaseOptions> {
  return {
    type: 'postgres',
    config,
    driver: { ...pg, Pool: ServicePool },
    migrations: await loadMigrations(migrations),
    migrationsTableName: 'schema_migration',
    synchronize: false,
    installExtensions: false,
    // The pool replaces an idle connection that breaks; nobody needs to act.
    poolErrorHandler: () => undefined,
  };
}
