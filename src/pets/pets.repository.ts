import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { type IdempotencyKey, type Page, SharedRepository } from '#platform';
import { type ListPetsQuery, type NewPet, Pet, toPet } from './pet.dto.js';
import { PetEntity } from './pet.entity.js';

/** Stores and reads pets. */
@Injectable()
export class PetsRepository extends SharedRepository<PetEntity, Pet> {
  constructor(@InjectRepository(PetEntity) pets: Repository<PetEntity>) {
    super(pets, toPet);
  }

  list(query: ListPetsQuery): Promise<Page<Pet>> {
    return this.page(query, { status: query.status });
  }

  /** Stores a pet under a new id. Committed when the promise resolves. */
  async insert(newPet: NewPet, key?: IdempotencyKey): Promise<Pet> {
    const id = await this.insertOnce(key, newPet);
    const { name, categoryId, status } = newPet;
    return Object.assign(new Pet(), { id, name, categoryId, status });
  }
}
