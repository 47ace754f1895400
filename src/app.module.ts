import { type DynamicModule, Global, Module, type Type } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { ApiKeyGuard, AuthModule, EventStreams, REQUEST_STEPS, type RequestStep } from '#api-keys';
import { DocsPagesModule } from '#docs-pages';
import { ErrorFilter } from '#http';
import { IdempotencyModule } from '#idempotency';
import { BodyGuard, InputPipe } from '#input';
import { MODULE_METADATA } from '#internals';
import { KeyUsage, KeyUsageModule } from '#key-usage';
import { ObservabilityModule } from '#observability';
import { OpenApiModule } from '#openapi';
import { OperationRegistry } from '#operations';
import { DatabaseModule } from '#postgres';
import { RateLimiter, RateLimitModule } from '#rate-limit';
import { ReplicasModule } from '#replicas';
import { Clock } from '#runtime';
import { Application, Config } from '#settings';
import { applicationOf } from './app.description.js';
import type { AppOptions } from './app.options.js';
import { PetsModule } from './pets/pets.module.js';
import type { ServiceConfig } from './settings.js';

/** The table of contents: all features, and the libraries. Add a feature after the others. */
@Global()
@Module({
  imports: [
    // One feature per line: a merge keeps the lines of both branches (.gitattributes).
    PetsModule,
  ],
  providers: [Clock],
  exports: [Application, Clock, Config],
})
export class AppModule {
  /**
   * The whole application.
   *
   * @param config the settings of this process
   * @param options the project's own features, migrations and texts
   */
  static forRoot(config: ServiceConfig, options: AppOptions = {}): DynamicModule {
    // Nest would import the modules returned here before those of @Module, where `nest generate` adds features. Listing
    // the features of @Module again fixes the order.
    const features = Reflect.getMetadata(MODULE_METADATA.IMPORTS, AppModule) as Type[];
    const libraries = [
      ReplicasModule,
      DatabaseModule,
      AuthModule,
      IdempotencyModule,
      OpenApiModule,
      DocsPagesModule,
      ObservabilityModule,
    ];
    // Features before the libraries: the router matches routes in this order. RequestModule has no routes.
    const imports = [RequestModule, ...features, ...(options.features ?? []), ...libraries];
    const application = { provide: Application, useValue: applicationOf(options) };
    return { module: AppModule, imports, providers: [{ provide: Config, useValue: config }, application] };
  }
}

/**
 * What every request meets, in this order; the filter sends whatever is thrown. Nest calls global guards and pipes in the
 * order of the modules' imports, and global filters in the opposite order. So the application imports this module first: the
 * API key is checked before the guards of features, and the filters of features come before this one.
 */
@Global()
@Module({
  imports: [DiscoveryModule, KeyUsageModule, RateLimitModule],
  providers: [
    OperationRegistry,
    {
      provide: REQUEST_STEPS,
      inject: [KeyUsage, EventStreams, RateLimiter],
      useFactory: (...steps: RequestStep[]) => steps,
    },
    { provide: APP_FILTER, useClass: ErrorFilter },
    { provide: APP_GUARD, useClass: ApiKeyGuard },
    { provide: APP_GUARD, useClass: BodyGuard },
    // Here `@Deprecated` and `@Stability` add DeprecationInterceptor to their handlers.
    { provide: APP_PIPE, useClass: InputPipe },
  ],
  exports: [OperationRegistry],
})
export class RequestModule {}
