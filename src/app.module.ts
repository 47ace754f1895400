import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { APPLICATION } from './app.description.js';
import type { Config } from './config.js';
import { PetsModule } from './pets/pets.module.js';
import { PlatformModule, RequestModule } from './platform/platform.module.js';

/** All features. Add a module here. */
const FEATURES = [PetsModule];

/** Table of contents: the features, and the platform below them. */
@Module({})
export class AppModule {
  /** @param more features besides those of the service */
  static forRoot(config: Config, more: readonly (Type | DynamicModule)[] = []): DynamicModule {
    // Features before the platform: the router matches routes in this order. RequestModule has no routes.
    const platform = PlatformModule.forRoot(config, APPLICATION);
    return { module: AppModule, imports: [RequestModule, ...FEATURES, ...more, platform] };
  }
}
