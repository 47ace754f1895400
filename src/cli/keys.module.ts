import { type DynamicModule, Global, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Config, readConfig } from '../config.js';
import { ApiKeysModule } from '../platform/api-keys/api-keys.module.js';
import { ApiKeyRequestError, ApiKeysService } from '../platform/api-keys/api-keys.service.js';
import { Application } from '../platform/application.js';
import { Clock } from '../platform/clock.js';
import { DatabaseModule } from '../platform/database/database.module.js';
import { KeyUsageRepository } from '../platform/key-usage/key-usage.repository.js';
import type { KeyWork } from './context.js';
import { CommandError } from './options.js';

/** The part of the platform that commands need: database and API keys, without the HTTP server. */
@Global()
@Module({})
class KeysModule {
  /** @throws StartupError for wrong settings */
  static forRoot(application: Application): DynamicModule {
    return {
      module: KeysModule,
      imports: [DatabaseModule, ApiKeysModule],
      providers: [
        Clock,
        KeyUsageRepository,
        { provide: Config, useValue: readConfig() },
        { provide: Application, useValue: application },
      ],
      exports: [Config, Application, Clock, KeyUsageRepository],
    };
  }
}

/** `CommandContext.withKeys` in a process of its own: opens the database, and closes it afterwards. */
export async function withKeys<Result>(application: Application, work: KeyWork<Result>): Promise<Result> {
  const options = { logger: false, abortOnError: false } as const;
  const app = await NestFactory.createApplicationContext(KeysModule.forRoot(application), options);
  try {
    return await work(app.get(ApiKeysService), app.get(KeyUsageRepository));
  } catch (error) {
    asCommandError(error);
  } finally {
    await app.close();
  }
}

/** @throws CommandError for what the operator can correct; any other error unchanged */
export function asCommandError(error: unknown): never {
  throw error instanceof ApiKeyRequestError ? new CommandError(error.message) : error;
}
