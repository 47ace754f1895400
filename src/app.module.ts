import { Module } from '@nestjs/common';
import { PlatformModule } from '#service';
import { PET_STORE } from './app.description.js';
import { PetsModule } from './pets/pets.module.js';

/** The service: the platform, then the features in the order in which the router matches their routes. */
@Module({
  imports: [
    PlatformModule.forRoot(PET_STORE),
    // One feature per line, so that a merge shows what each branch has added or removed.
    PetsModule,
  ],
})
export class AppModule {}
