import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Application, Config, type MigrationSource } from '#settings';
import { answerTimeoutMs, type PostgresConfig } from './connection-settings.js';
import { type DatabaseOptions, dataSourceOptions, openCurrentDatabase } from './data-source.js';
import { Database } from './database.js';

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
        extra: { answerTimeoutMs: answerTimeoutMs(config) },
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
