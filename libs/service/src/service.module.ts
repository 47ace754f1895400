import { type DynamicModule, Global, Module, type Type } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_PIPE, DiscoveryModule } from '@nestjs/core';
import { ApiKeyGuard, AuthModule, EventStreams, REQUEST_STEPS, type RequestStep } from '#access';
import { ConstraintErrors, IdempotencyModule } from '#resources';
import { DeclaredErrors } from '#errors';
import { ErrorFilter } from '#edge';
import { BodyGuard, checkDeclaredMembers, InputPipe } from '#input';
import { ObservabilityModule } from '#ops';
import { OpenApiModule, OperationRegistry } from '#operations';
import { DatabaseModule, MIGRATIONS } from '#postgres';
import { Clock, StartupError } from '#runtime';
import { Config } from '#settings';
import {
  type CoreConfig,
  type LoadedPart,
  migrationsOf,
  PlatformModule,
  SERVICE,
  servedBy,
  type ServiceDefinition,
} from '#definition';
import { importsOf } from './module-imports.internals.js';

/** The definition of an application. @throws StartupError when `app` does not import `PlatformModule.forRoot(…)` itself */
export function definitionOf(app: Type): ServiceDefinition {
  const platform = importsOf(app).find((one) => 'module' in one && one.module === PlatformModule) as
    DynamicModule | undefined;
  const [provider] = (platform?.providers ?? []) as { useValue: ServiceDefinition }[];
  if (provider !== undefined) return provider.useValue;
  throw new StartupError(
    `@Module of ${app.name} must import PlatformModule.forRoot(…), with the definition of the service.`,
  );
}

/**
 * The root module of a service: what a request meets, the features of `app`, the platform, and the parts; the router matches routes in this
 * order. Not a dynamic module: Nest would put its imports in front of those of a class.
 *
 * @throws StartupError when a dependency differs from what the platform relies on
 */
export async function serviceOf(app: Type, config: CoreConfig): Promise<Type> {
  const definition = definitionOf(app);
  // Secrecy depends on it, so another release of a dependency that differs here is refused, and not only warned of.
  checkDeclaredMembers();
  const parts: LoadedPart[] = [];
  for (const part of definition.parts) if (part.load !== undefined) parts.push(await part.load());
  const migrations = await migrationsOf(definition);
  @Global()
  @Module({
    imports: [
      requestModule(parts),
      app,
      DatabaseModule,
      AuthModule,
      IdempotencyModule,
      OpenApiModule,
      ObservabilityModule,
      ...parts.filter(({ step }) => step === undefined).map(({ module }) => module),
    ],
    providers: [
      { provide: Config, useValue: config },
      servedBy(definition),
      { provide: MIGRATIONS, useValue: migrations },
      { provide: DeclaredErrors, useClass: ConstraintErrors },
      Clock,
    ],
    exports: [Config, SERVICE, MIGRATIONS, DeclaredErrors, Clock],
  })
  class ServiceModule {}
  return ServiceModule;
}

class RequestModule {}

/**
 * What every request meets, in this order. Nest calls global guards and pipes in the order of the modules' imports, and global filters in
 * the opposite order: the API key is checked before the guards of features, and the filters of features come before this one.
 */
function requestModule(parts: readonly LoadedPart[]): DynamicModule {
  const ofRequests = parts.filter(({ step }) => step !== undefined);
  return {
    module: RequestModule,
    global: true,
    imports: [DiscoveryModule, ...ofRequests.map(({ module }) => module)],
    providers: [
      OperationRegistry,
      {
        provide: REQUEST_STEPS,
        inject: [...ofRequests.flatMap(({ step }) => step ?? []), EventStreams],
        useFactory: (...steps: RequestStep[]) => steps,
      },
      { provide: APP_FILTER, useClass: ErrorFilter },
      { provide: APP_GUARD, useClass: ApiKeyGuard },
      { provide: APP_GUARD, useClass: BodyGuard },
      // Here `@Deprecated` adds DeprecationInterceptor to its handlers.
      { provide: APP_PIPE, useClass: InputPipe },
    ],
    exports: [OperationRegistry],
  };
}
