import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Database } from '../platform/database/database.js';
import type { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
import { Idempotency } from '../platform/idempotency/idempotency.js';
import { INT64_MAX } from '../platform/json/int64.js';
import type { Page } from '../platform/paging/keyset.js';
import { type NewPet, Pet, PETS_ORDER, toPet } from './pet.dto.js';
import { PetEntity, type PetStatus } from './pet.entity.js';

/** A page: at most `limit` animals with ids from `firstId` on. */
export interface PageRequest {
  readonly firstId: bigint;
  readonly limit: number;
  readonly status: PetStatus | undefined;
}

/** Stores and reads animals. */
@Injectable()
export class PetsRepository {
  constructor(
    @InjectRepository(PetEntity) private readonly pets: Repository<PetEntity>,
    private readonly idempotency: Idempotency,
    protected readonly database: Database,
  ) {}

  /** A page of animals, by ascending id; from a read replica if there is one. */
  async list(request: PageRequest): Promise<Page<Pet>> {
    const { firstId, limit, status } = request;
    const found = await this.database.readReplica((manager) => {
      // One animal more than the page holds shows whether another page follows.
      const page = manager.createQueryBuilder(PetEntity, 'pet').limit(limit + 1);
      if (status === undefined) {
        return page.where('pet.id >= :firstId', { firstId }).orderBy('pet.id').getMany();
      }
      // Only the index on (status, id) can serve these row comparisons. With `status = :status` PostgreSQL might scan the
      // primary key and skip rows of other statuses: the whole table, if the status is rare.
      return page
        .where('(pet.status, pet.id) >= (:status, :firstId)', { status, firstId })
        .andWhere('(pet.status, pet.id) <= (:status, :lastId)', { lastId: INT64_MAX })
        .orderBy('pet.status')
        .addOrderBy('pet.id')
        .getMany();
    });
    return PETS_ORDER.page(found.map(toPet), request, { status });
  }

  /** The animal with this id, from the primary: a client must find the animal it just created. */
  async find(id: bigint): Promise<Pet | undefined> {
    const found = await this.pets.findOneBy({ id: String(id) });
    return found ? toPet(found) : undefined;
  }

  /**
   * Stores an animal under a new id; requests with the same key store one animal. Committed when the promise resolves.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  async insert(newPet: NewPet, key?: IdempotencyKey): Promise<Pet> {
    const { name, categoryId, status } = newPet;
    const id = await this.idempotency.once(key, newPet, async ({ manager }) => {
      const pet = manager.create(PetEntity, { name, categoryId: String(categoryId), status });
      await manager.insert(PetEntity, pet);
      return pet.id;
    });
    return new Pet(BigInt(id), name, categoryId, status);
  }
}
