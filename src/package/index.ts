/*
 * `petstore-service`: the application for a project that adds features of its own. `petstore-service/platform` has what these
 * features use, `petstore-service/testing` what their tests use.
 */

export { AppModule } from '../app.module.js';
export type { AppOptions, DocumentOptions, ServiceOptions } from '../app.options.js';
export { runCommands } from '../cli/run-commands.js';
export { Config, readConfig } from '../config.js';
export { loadEnvironmentFile } from '../settings/environment-file.js';
export { PetEntity } from '../pets/pet.entity.js';
export { PetsModule } from '../pets/pets.module.js';
export { PetsService } from '../pets/pets.service.js';
export type { MigrationSource } from '../platform/application.js';
export { createApplication, startService } from '../start/start-service.js';
