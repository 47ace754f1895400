import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { type IdempotencyKey, SharedRepository } from '#platform';
import { type NewSampleThing, SampleThing, toSampleThing } from './sample-thing.dto.js';
import { SampleThingEntity } from './sample-thing.entity.js';

/** The sample things in PostgreSQL. */
@Injectable()
export class SampleThingsRepository extends SharedRepository<SampleThingEntity, SampleThing> {
  constructor(@InjectRepository(SampleThingEntity) sampleThings: Repository<SampleThingEntity>) {
    super(sampleThings, toSampleThing);
  }

  /**
   * Committed when the promise is fulfilled; with a key, once for the key.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  async insert(newSampleThing: NewSampleThing, key?: IdempotencyKey): Promise<SampleThing> {
    const id = await this.insertOnce(key, newSampleThing);
    // As it is stored: a column may round. It may be gone after a repeated request, and is stored even if it cannot be read now.
    return (await this.find(id).catch(() => undefined)) ?? Object.assign(new SampleThing(), { ...newSampleThing, id });
  }

  /** Whether there was a row to delete. */
  async delete(id: bigint): Promise<boolean> {
    const { affected } = await this.repository.delete({ id: String(id) });
    return affected === 1;
  }
}
