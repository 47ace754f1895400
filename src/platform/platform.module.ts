import { type DynamicModule, Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { Config } from '../config.js';
import { Application } from './application.js';
import { AuthModule } from './auth/auth.module.js';
import { Clock } from './clock.js';
import { DatabaseModule } from './database/database.module.js';
import { DocsPagesModule } from './docs-pages/docs-pages.module.js';
import { ErrorFilter } from './errors/error.filter.js';
import { DeclaredBodyGuard } from './input/declared-body.guard.js';
import { InputCheck } from './input/input-check.js';
import { InputPipe } from './input/input.pipe.js';
import { IdempotencyModule } from './idempotency/idempotency.module.js';
import { ObservabilityModule } from './observability/observability.module.js';

/** Everything that features build on. The platform imports no feature. */
@Global()
@Module({})
export class PlatformModule {
  static forRoot(config: Config, application: Application): DynamicModule {
    return {
      module: PlatformModule,
      imports: [DiscoveryModule, DatabaseModule, AuthModule, IdempotencyModule, DocsPagesModule, ObservabilityModule],
      providers: [
        Clock,
        { provide: Config, useValue: config },
        { provide: Application, useValue: application },
        { provide: APP_FILTER, useClass: ErrorFilter },
        InputCheck,
        { provide: APP_GUARD, useClass: DeclaredBodyGuard },
        { provide: APP_PIPE, useClass: InputPipe },
      ],
      exports: [Config, Application, Clock],
    };
  }
}
