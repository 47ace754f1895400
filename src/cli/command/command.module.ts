import { type DynamicModule, Global, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { APPLICATION } from '../../app.description.js';
import { Config, readConfig } from '../../config.js';
import { Application } from '../../platform/application.js';
import { ApiKeyRequestError, ApiKeysService } from '../../platform/api-keys/api-keys.service.js';
import { KeyUsageRepository } from '../../platform/key-usage/key-usage.repository.js';
import { ApiKeysModule } from '../../platform/api-keys/api-keys.module.js';
import { Clock } from '../../platform/clock.js';
import { DatabaseModule } from '../../platform/database/database.module.js';
import { CommandError } from './command-error.js';

/** The part of the platform that commands need: database and API keys, without the HTTP server. */
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
 * Opens the database, runs `work` on the API keys and their usage, and closes the database.
 *
 * @throws StartupError when the settings are wrong or the database cannot be opened
 * @throws CommandError when the keys cannot do what the operator asked for
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
