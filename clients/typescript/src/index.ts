export {
  type CallOptions,
  type Conditional,
  type CreatePetOptions,
  type DeprecationNotice,
  type FetchedPet,
  type ListPetsOptions,
  type ListPetsPageOptions,
  type NewPet,
  type NextPageOptions,
  type NotModified,
  type Pet,
  PetStoreClient,
  type PetStoreClientOptions,
  type PetsPage,
  type PetStatus,
} from './client.js';
export { type ClientErrorCode, PetStoreError } from './errors.js';
export { fromJson, toJson } from './json.js';
export type { OperationId } from './transport.js';
