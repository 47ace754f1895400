/*
 * `petstore-service`: the application, for projects that add features of their own. Features import
 * `petstore-service/platform`, and their tests import `petstore-service/testing`.
 */

export { AppModule } from '../app.module.js';
export type { AppOptions } from '../app.options.js';
export { runCommands } from '../cli/program.js';
export { PetEntity } from '../pets/pet.entity.js';
export { PetsModule } from '../pets/pets.module.js';
export { PetsService } from '../pets/pets.service.js';
export { loadEnvironmentFile, readConfig, type ServiceConfig } from '../settings.js';
export { createApplication, startService } from '../start/start-service.js';
