import { type DynamicModule, Module } from '@nestjs/common';
import type { Config } from './config.js';
import { PetsModule } from './pets/pets.module.js';
import { PlatformModule } from './platform/platform.module.js';

/** Every feature. A new module is one line here. */
const FEATURES = [PetsModule];

/** Table of contents: the features, and the platform they stand on. */
@Module({})
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    // The features first: the router looks through the routes in this order.
    return { module: AppModule, imports: [...FEATURES, PlatformModule.forRoot(config)] };
  }
}
