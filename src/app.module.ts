import { type DynamicModule, Module } from '@nestjs/common';
import type { Config } from './config.js';
import { PetsModule } from './pets/pets.module.js';
import { PlatformModule } from './platform/platform.module.js';

/** Table of contents: every feature, and the platform they stand on. A new module is one line here. */
@Module({ imports: [PetsModule] })
export class AppModule {
  static forRoot(config: Config): DynamicModule {
    return { module: AppModule, imports: [PlatformModule.forRoot(config)] };
  }
}
