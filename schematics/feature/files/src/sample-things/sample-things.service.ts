import { Injectable } from '@nestjs/common';
import { ApiError, defineError, type IdempotencyKey, type Page } from '#platform';
import type { ListSampleThingsQuery, NewSampleThing, SampleThing } from './sample-thing.dto.js';
import { SampleThingsRepository } from './sample-things.repository.js';

export const SAMPLE_THING_NOT_FOUND = defineError(
  'sample_thing_not_found',
  404,
  'No sample thing has this identifier.',
);

/** The sample things. */
@Injectable()
export class SampleThingsService {
  constructor(private readonly repository: SampleThingsRepository) {}

  /**
   * One page, by ascending id.
   *
   * @throws ApiError INVALID_CURSOR
   */
  list(query: ListSampleThingsQuery): Promise<Page<SampleThing>> {
    return this.repository.page(query);
  }

  /** @throws ApiError SAMPLE_THING_NOT_FOUND */
  async get(id: bigint): Promise<SampleThing> {
    const found = await this.repository.find(id);
    if (!found) throw new ApiError(SAMPLE_THING_NOT_FOUND);
    return found;
  }

  /**
   * Adds one. Requests with the same idempotency key add one together.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  create(newSampleThing: NewSampleThing, key?: IdempotencyKey): Promise<SampleThing> {
    return this.repository.insert(newSampleThing, key);
  }

  /** @throws ApiError SAMPLE_THING_NOT_FOUND */
  async delete(id: bigint): Promise<void> {
    if (!(await this.repository.delete(id))) throw new ApiError(SAMPLE_THING_NOT_FOUND);
  }
}
