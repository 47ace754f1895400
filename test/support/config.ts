import { configReader } from '#service';
import { migrationsOf } from '../../libs/definition/src/definition.js';
import { PET_STORE } from '../../src/app.description.js';

/** All migrations of the service. */
export const MIGRATIONS = await migrationsOf(PET_STORE);

/** Reads the settings of the Pet Store Service. */
export const readConfig = await configReader(PET_STORE);

export type PetStoreConfig = ReturnType<typeof readConfig>;
