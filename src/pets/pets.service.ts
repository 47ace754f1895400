import { Injectable } from '@nestjs/common';
import { ApiError } from '../platform/errors/api-error.js';
import { defineError } from '../platform/errors/error-catalogue.js';
import { Database } from '../platform/database/database.js';
import { SharedReads } from '../platform/database/sharing/shared-reads.js';
import type { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
import { INT64_MAX, INT64_MIN } from '../platform/json/int64.js';
import { JsonBody } from '../platform/json/json-body.js';
import { decodeCursor, encodeCursor } from './pet-cursor.js';
import { type ListPetsQuery, type NewPet, writePet } from './pet.dto.js';
import type { PetStatus } from './pet.entity.js';
import { LINES_OF_A_PAGE, PetsRepository } from './pets.repository.js';

export const PET_NOT_FOUND = defineError('pet_not_found', 404, 'No animal has this identifier.');

/** Different pages that may be read or waited for at a time. */
const MAX_PAGES_AT_A_TIME = 10_000;

/** One page of the list. */
export interface PetsPage {
  /** The array of animals, written once for all who share the page. */
  readonly body: JsonBody;
  /** Cursor of the page after this one; undefined on the last. */
  readonly nextCursor: string | undefined;
}

/** An animal that was added. */
export interface CreatedPet {
  readonly id: string;
  readonly body: JsonBody;
}

/** The catalogue of animals, as the JSON that is answered. */
@Injectable()
export class PetsService {
  private readonly pages: SharedReads<PetsPage>;

  constructor(
    private readonly repository: PetsRepository,
    database: Database,
  ) {
    this.pages = new SharedReads(MAX_PAGES_AT_A_TIME, database.acquireTimeoutMs / LINES_OF_A_PAGE);
  }

  /**
   * A page of animals, by ascending id.
   *
   * @throws ApiError INVALID_CURSOR
   */
  list({ limit, status, cursor }: ListPetsQuery): Promise<PetsPage> {
    const after = cursor === undefined ? undefined : decodeCursor(cursor, status);
    const firstId = after === undefined ? INT64_MIN : after + 1n;
    return this.pages.read(`${limit} ${status} ${firstId}`, () => this.readPage(firstId, limit, status));
  }

  private async readPage(firstId: bigint, limit: number, status: PetStatus | undefined): Promise<PetsPage> {
    // One more than asked for tells whether there is a next page, also when this one is exactly full.
    // After the largest id there is nothing, and no id to begin with.
    const found = firstId > INT64_MAX ? [] : await this.repository.list({ firstId, limit: limit + 1, status });
    const rows = found.length > limit ? found.slice(0, limit) : found;
    const last = found.length > limit ? rows.at(-1) : undefined;
    return {
      body: new JsonBody(`[${rows.map(writePet).join()}]`),
      nextCursor: last && encodeCursor(BigInt(last[0]), status),
    };
  }

  /**
   * Adds an animal; with a key, once for the key.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  async create(pet: NewPet, key?: IdempotencyKey): Promise<CreatedPet> {
    const id = await (key === undefined ? this.repository.insert(pet) : this.repository.insertOnce(pet, key));
    return { id, body: new JsonBody(writePet([id, pet.name, String(pet.categoryId), pet.status])) };
  }

  /**
   * The animal with this id; undefined stands for an id that no animal can have.
   *
   * @throws ApiError PET_NOT_FOUND
   */
  async get(id: bigint | undefined): Promise<JsonBody> {
    const pet = id === undefined ? undefined : await this.repository.find(id);
    if (!pet) {
      throw new ApiError(PET_NOT_FOUND, 'No animal has this identifier.');
    }
    return new JsonBody(writePet(pet));
  }
}
