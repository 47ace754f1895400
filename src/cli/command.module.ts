import { type DynamicModule, Global, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { APPLICATION } from '../app.description.js';
import { Config, readConfig } from '../config.js';
import { Application } from '../platform/application.js';
import { ApiKeyRequestError, ApiKeysService } from '../platform/api-keys/api-keys.service.js';
import { KeyUsageRepository } from '../platform/key-usage/key-usage.repository.js';
import { ApiKeysModule } from '../platform/api-keys/api-keys.module.js';
import { Clock } from '../platform/clock.js';
import { DatabaseModule } from '../platform/database/database.module.js';
import { CommandError } from './terminal.js';

/** What a command needs of the platform: the database and the keys, no server. */
@Global()
@Module({})
export class CommandModule {
  /** @throws StartupError for wrong settings */
  static forRoot(): DynamicModule {
    return {
      module: CommandModule,
      imports: [DatabaseModule, ApiKeysModule],
      providers: [
        Clock,
        KeyUsageRepository,
        { provide: Config, useValue: readConfig() },
        { provide: Application, useValue: APPLICATION },
      ],
      exports: [Config, Application, Clock, KeyUsageRepository],
    };
  }
}

/**
 * Lets a command work on the keys and their usage; opens the database for it, and closes it.
 *
 * @throws StartupError when the database cannot be opened or the settings are wrong; CommandError for what the operator
 * asked for and cannot be done
 */
export async function withKeys<Result>(
  work: (apiKeys: ApiKeysService, keyUsage: KeyUsageRepository) => Promise<Result>,
): Promise<Result> {
  const options = { logger: false, abortOnError: false } as const;
  const context = await NestFactory.createApplicationContext(CommandModule.forRoot(), options);
  try {
    return await work(context.get(ApiKeysService), context.get(KeyUsageRepository));
  } catch (error) {
    throw error instanceof ApiKeyRequestError ? new CommandError(error.message) : error;
  } finally {
    await context.close();
  }
}
