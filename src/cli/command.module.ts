import { type DynamicModule, Global, Module } from '@nestjs/common';
import { Config, readConfig } from '../config.js';
import { KeysModule } from '../platform/auth/keys.module.js';
import { Clock } from '../platform/clock.js';
import { DatabaseModule } from '../platform/database/database.module.js';

/** What a command needs of the platform: the database and the keys, no server. */
@Global()
@Module({})
export class CommandModule {
  /** @throws StartupError for wrong settings */
  static forRoot(): DynamicModule {
    return {
      module: CommandModule,
      imports: [DatabaseModule, KeysModule],
      providers: [Clock, { provide: Config, useValue: readConfig() }],
      exports: [Config, Clock],
    };
  }
}
