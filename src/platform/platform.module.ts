import { type DynamicModule, Global, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { Config } from '../config.js';
import { Application } from './application.js';
import { ApiKeyGuard } from './auth/api-key.guard.js';
import { AuthModule } from './auth/auth.module.js';
import { Clock } from './clock.js';
import { DatabaseModule } from './database/database.module.js';
import { DeprecationInterceptor } from './deprecation/deprecation.interceptor.js';
import { DocsPagesModule } from './docs-pages/docs-pages.module.js';
import { ErrorFilter } from './errors/error.filter.js';
import { HealthModule } from './health/health.module.js';
import { BodyGuard } from './input/body.guard.js';
import { InputPipe } from './input/input.pipe.js';
import { IdempotencyModule } from './idempotency/idempotency.module.js';
import { ObservabilityModule } from './observability/observability.module.js';

/**
 * The platform's global guards, pipe and filter. Nest calls global guards and pipes in the order of the modules' imports, and
 * global filters in the opposite order. So the application imports this module first: the API key is checked before the
 * guards of features, and the filters of features come before the platform's filter, which answers everything.
 */
@Module({
  providers: [
    { provide: APP_FILTER, useClass: ErrorFilter },
    { provide: APP_GUARD, useExisting: ApiKeyGuard },
    { provide: APP_GUARD, useClass: BodyGuard },
    DeprecationInterceptor,
    { provide: APP_PIPE, useClass: InputPipe },
  ],
})
export class RequestModule {}

/** The modules and providers that features build on. */
@Global()
@Module({})
export class PlatformModule {
  static forRoot(config: Config, application: Application): DynamicModule {
    return {
      module: PlatformModule,
      imports: [
        DiscoveryModule,
        DatabaseModule,
        AuthModule,
        IdempotencyModule,
        DocsPagesModule,
        ObservabilityModule,
        HealthModule,
      ],
      providers: [Clock, { provide: Config, useValue: config }, { provide: Application, useValue: application }],
      exports: [Config, Application, Clock],
    };
  }
}
