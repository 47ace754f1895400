import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import { applicationOf } from './app.description.js';
import type { AppOptions } from './app.options.js';
import { type Config, withBasePath } from './config.js';
import { PetsModule } from './pets/pets.module.js';
import { basePathOf } from './platform/application.js';
import { PlatformModule, RequestModule } from './platform/platform.module.js';

/** Table of contents: the features, and the platform below them. Add a feature behind the others. */
@Module({
  imports: [
    // One a line: a merge keeps the lines of both branches (.gitattributes).
    PetsModule,
  ],
})
export class AppModule {
  /**
   * The whole application.
   *
   * @param config the settings of this process
   * @param options what a project adds: features, migrations, texts
   */
  static forRoot(config: Config, options: AppOptions = {}): DynamicModule {
    // Nest takes these before those of @Module, where `nest generate` adds features; so they are named again, in their order.
    const features = Reflect.getMetadata(MODULE_METADATA.IMPORTS, AppModule) as Type[];
    // Features before the platform: the router matches routes in this order. RequestModule has no routes.
    const application = applicationOf(options);
    const settings = withBasePath(config, basePathOf(application));
    const platform = PlatformModule.forRoot(settings, application);
    return { module: AppModule, imports: [RequestModule, ...features, ...(options.features ?? []), platform] };
  }
}
