import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Config } from '../../config.js';
import { type DatabaseOptions, dataSourceOptions, openCurrentDatabase } from './data-source.js';
import { Database } from './database.js';

/**
 * The database for every module: `Database`, TypeORM's `DataSource` and `EntityManager`, and repositories through
 * `TypeOrmModule.forFeature`. Opened before anything that injects one of them, with the schema of this code; closed with
 * the application.
 */
@Global()
@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      inject: [Config],
      useFactory: async (config: Config) => ({
        ...(await dataSourceOptions(config)),
        autoLoadEntities: true,
        // Whoever starts the process starts it again; a start that fails says so at once.
        toRetry: () => false,
      }),
      dataSourceFactory: (options) => openCurrentDatabase(options as DatabaseOptions),
    }),
  ],
  providers: [Database],
  exports: [Database],
})
export class DatabaseModule {}
