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
import { DeclaredBodyGuard } from './input/declared-body.guard.js';
import { GatewaysModule } from './gateways/gateways.module.js';
import { InputCheck } from './input/input-check.js';
import { InputPipe } from './input/input.pipe.js';
import { IdempotencyModule } from './idempotency/idempotency.module.js';
import { ObservabilityModule } from './observability/observability.module.js';
import { TracingModule } from './tracing/tracing.module.js';

/**
 * What the platform does with every request. Nest asks the guards and pipes of all modules in the order of their import, and
 * the filters in the opposite order. So the application imports this module first: the API key is checked before the guards
 * of features run, and their filters are asked before the one that answers everything.
 */
@Module({
  providers: [
    { provide: APP_FILTER, useClass: ErrorFilter },
    { provide: APP_GUARD, useExisting: ApiKeyGuard },
    { provide: APP_GUARD, useClass: DeclaredBodyGuard },
    DeprecationInterceptor,
    { provide: APP_PIPE, useClass: InputPipe },
  ],
})
export class RequestModule {}

/** Everything that features build on. The platform imports no feature. */
@Global()
@Module({})
export class PlatformModule {
  static forRoot(config: Config, application: Application): DynamicModule {
    return {
      module: PlatformModule,
      imports: [
        TracingModule.forRoot(config, application.info.version),
        DiscoveryModule,
        DatabaseModule,
        AuthModule,
        GatewaysModule,
        IdempotencyModule,
        DocsPagesModule,
        ObservabilityModule,
        HealthModule,
      ],
      providers: [
        Clock,
        { provide: Config, useValue: config },
        { provide: Application, useValue: application },
        InputCheck,
      ],
      exports: [Config, Application, Clock],
    };
  }
}
