import { configReader } from '#service';
import { PET_STORE } from '../../src/app.description.js';

/** Reads the settings of the Pet Store Service. */
export const readConfig = await configReader(PET_STORE);

export type PetStoreConfig = ReturnType<typeof readConfig>;
