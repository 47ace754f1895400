import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Database } from '../platform/database/database.js';
import type { IdempotencyKey } from '../platform/idempotency/idempotency-key.js';
import { Idempotency, type Kept } from '../platform/idempotency/idempotency.js';
import type { Page } from '../platform/paging/keyset.js';
import {
  type ListSampleThingsQuery,
  type NewSampleThing,
  SAMPLE_THINGS_BY_ID,
  type SampleThing,
  toSampleThing,
} from './sample-thing.dto.js';
import { SampleThingEntity } from './sample-thing.entity.js';

/** The sample things in PostgreSQL. */
@Injectable()
export class SampleThingsRepository {
  constructor(
    @InjectRepository(SampleThingEntity) private readonly sampleThings: Repository<SampleThingEntity>,
    private readonly idempotency: Idempotency,
    private readonly database: Database,
  ) {}

  /**
   * One page, by ascending id; from a read replica if there is one.
   *
   * @throws ApiError INVALID_CURSOR
   */
  async list(query: ListSampleThingsQuery): Promise<Page<SampleThing>> {
    const page = await this.database.readReplica((manager) =>
      SAMPLE_THINGS_BY_ID.read(manager.createQueryBuilder(SampleThingEntity, 'sampleThing'), query, {}),
    );
    return { ...page, items: page.items.map(toSampleThing) };
  }

  /** From the primary, so that clients find what they have just created. */
  async find(id: bigint): Promise<SampleThing | undefined> {
    const found = await this.sampleThings.findOneBy({ id: String(id) });
    return found ? toSampleThing(found) : undefined;
  }

  /**
   * Committed when the promise is fulfilled; with a key, once for the key.
   *
   * @throws ApiError IDEMPOTENCY_KEY_REUSED
   */
  insert(newSampleThing: NewSampleThing, key?: IdempotencyKey): Promise<Kept<SampleThing>> {
    return this.idempotency.answer(key, newSampleThing, async ({ manager }) =>
      toSampleThing(await manager.save(manager.create(SampleThingEntity, { ...newSampleThing }))),
    );
  }

  /** Whether there was a row to delete. */
  async delete(id: bigint): Promise<boolean> {
    const { affected } = await this.sampleThings.delete({ id: String(id) });
    return affected === 1;
  }
}
