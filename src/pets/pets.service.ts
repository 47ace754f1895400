import { Injectable } from '@nestjs/common';
import { ApiError, defineError, type IdempotencyKey, type Page } from '#platform';
import type { ListPetsQuery, NewPet, Pet } from './pet.dto.js';
import { PetsRepository } from './pets.repository.js';

export const PET_NOT_FOUND = defineError('pet_not_found', 404, 'No pet has this identifier.');

/** The catalogue of pets. */
@Injectable()
export class PetsService {
  /** @internal */
  constructor(private readonly repository: PetsRepository) {}

  /**
   * A page of pets, by ascending id. Requests may share it, so it is frozen.
   *
   * @throws ApiError INVALID_CURSOR
   */
  list(query: ListPetsQuery): Promise<Page<Pet>> {
    return this.repository.list(query);
  }

  /** @throws ApiError PET_NOT_FOUND */
  async get(id: bigint): Promise<Pet> {
    const pet = await this.repository.find(id);
    if (pet === undefined) throw new ApiError(PET_NOT_FOUND);
    return pet;
  }

  /**
   * Adds a pet. Requests with the same idempotency key add one pet and get the same result.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  create(pet: NewPet, key?: IdempotencyKey): Promise<Pet> {
    return this.repository.insert(pet, key);
  }
}
