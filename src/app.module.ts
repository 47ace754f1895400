import { type DynamicModule, Module } from '@nestjs/common';
import { APPLICATION } from './app.description.js';
import type { Config } from './config.js';
import { PetsModule } from './pets/pets.module.js';
import { PlatformModule } from './platform/platform.module.js';

/** All features. Add a module here. */
const FEATURES = [PetsModule];

/** Table of contents: the features, and the platform below them. */
@Module({})
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    // Features first: the router matches routes in this order.
    return { module: AppModule, imports: [...FEATURES, PlatformModule.forRoot(config, APPLICATION)] };
  }
}
