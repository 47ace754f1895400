import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Application, Config } from '#settings';
import { answerTimeoutMs, type PostgresConfig } from './connection-settings.js';
import { type DatabaseOptions, dataSourceOptions, openCurrentDatabase } from './data-source.js';
import { Database } from './database.js';

/**
 * The database for every module: `Database`, TypeORM's `DataSource` and `EntityManager`, and repositories through
 * `TypeOrmModule.forFeature`. The database is opened and its schema checked before any class that injects one of these is
 * created. It is closed with the application.
 */
@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [Config, Application],
      useFactory: async (config: PostgresConfig, { migrations, typeorm }: Application) => ({
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
