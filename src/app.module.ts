import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { applicationOf } from './app.description.js';
import type { AppOptions } from './app.options.js';
import type { Config } from './config.js';
import { PetsModule } from './pets/pets.module.js';
import { MODULE_METADATA } from './platform/internals/nest-metadata.js';
import { PlatformModule, RequestModule } from './platform/platform.module.js';

/** The table of contents: all features, and the platform. Add a feature after the others. */
@Module({
  imports: [
    // One feature per line: a merge keeps the lines of both branches (.gitattributes).
    PetsModule,
  ],
})
export class AppModule {
  /**
   * The whole application.
   *
   * @param config the settings of this process
   * @param options the project's own features, migrations and texts
   */
  static forRoot(config: Config, options: AppOptions = {}): DynamicModule {
    // Nest would import the modules returned here before those of @Module, where `nest generate` adds features. Listing
    // the features of @Module again fixes the order.
    const features = Reflect.getMetadata(MODULE_METADATA.IMPORTS, AppModule) as Type[];
    const application = applicationOf(options);
    const platform = PlatformModule.forRoot(config, application);
    // Features before the platform: the router matches routes in this order. RequestModule has no routes.
    return { module: AppModule, imports: [RequestModule, ...features, ...(options.features ?? []), platform] };
  }
}
