import type { DynamicModule } from '@nestjs/common';
import { Application } from '#settings';
import type { ServiceDefinition } from './definition.js';

/**
 * Declares which service an application is. It stands in the imports of the application's own module, beside its features;
 * the start puts the platform around that module. A plain class, so that nothing of Nest is loaded for it.
 *
 * @example @Module({ imports: [PlatformModule.forRoot(ORDERS), OrdersModule] }) export class AppModule {}
 */
export class PlatformModule {
  static forRoot(definition: ServiceDefinition): DynamicModule {
    return {
      module: PlatformModule,
      global: true,
      providers: [{ provide: Application, useValue: definition }],
      exports: [Application],
    };
  }
}
