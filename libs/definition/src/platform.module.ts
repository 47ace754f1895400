import type { DynamicModule } from '@nestjs/common';
import { StartupError } from '#runtime';
import { Application } from '#settings';
import type { ServiceDefinition } from './definition.js';

/** The definition of the service whose platform is around the application's module. Only the start provides it. */
export const SERVICE = Symbol('service');

/** The services around which this process has put the platform. */
const served = new WeakSet<ServiceDefinition>();

/**
 * Declares which service an application is. It stands in the imports of the application's own module, beside its features;
 * the start puts the platform around that module. Without the platform the application is refused, because nothing would ask for
 * API keys. A plain class, so that nothing of Nest is loaded for it.
 *
 * @example @Module({ imports: [PlatformModule.forRoot(ORDERS), OrdersModule] }) export class AppModule {}
 */
export class PlatformModule {
  static forRoot(definition: ServiceDefinition): DynamicModule {
    return {
      module: PlatformModule,
      global: true,
      providers: [
        { provide: Application, useValue: definition },
        // Ahead of Nest's complaint that a feature has no DataSource.
        { provide: 'platform:served', useFactory: () => refuseUnless(served.has(definition)) },
        { provide: PlatformModule, inject: [{ token: SERVICE, optional: true }], useFactory: refuseUnless },
      ],
      exports: [Application],
    };
  }
}

/** The provider that lets an application with `PlatformModule` start. */
export function servedBy(definition: ServiceDefinition): { provide: symbol; useValue: ServiceDefinition } {
  served.add(definition);
  return { provide: SERVICE, useValue: definition };
}

function refuseUnless(isServed: unknown): true {
  if (isServed) return true;
  throw new StartupError(
    'Nothing would ask for API keys: only startService and createApplication make an application of PlatformModule, ' +
      'runCommands its commands, and createTestApp its tests. For a script, createApplication need not listen.',
  );
}
