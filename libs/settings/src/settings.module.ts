import { type DynamicModule, Global, Module } from '@nestjs/common';
import { Clock } from '#runtime';
import { Config } from './config.js';
import { Application } from './application.js';

/** The settings of the process, the texts of the application, and the clock, for every module. */
@Global()
@Module({})
export class SettingsModule {
  static forRoot(config: Config, application: Application): DynamicModule {
    return {
      module: SettingsModule,
      providers: [Clock, { provide: Config, useValue: config }, { provide: Application, useValue: application }],
      exports: [Config, Application, Clock],
    };
  }
}
