import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { type Page, SharedRepository } from '#platform';
import { type ListVisitsQuery, type NewVisit, toVisit, type Visit } from './visit.dto.js';
import { VisitEntity } from './visit.entity.js';

/** Stores and reads visits. */
@Injectable()
export class VisitsRepository extends SharedRepository<VisitEntity, Visit> {
  constructor(@InjectRepository(VisitEntity) visits: Repository<VisitEntity>) {
    super(visits, toVisit);
  }

  /** @throws ApiError INVALID_CURSOR */
  list(query: ListVisitsQuery): Promise<Page<Visit>> {
    return this.page(query, { reason: query.reason });
  }

  /** Stores a visit; undefined when its pet has `most` already. */
  async insertUpTo(most: number, visit: NewVisit): Promise<Visit | undefined> {
    const petId = String(visit.petId);
    return this.database.transaction(async ({ manager }) => {
      // Requests for one pet wait for each other: two that count at the same moment would both find room.
      await manager.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`visits of ${petId}`]);
      if ((await manager.countBy(VisitEntity, { petId })) >= most) return undefined;
      return toVisit(await manager.save(manager.create(VisitEntity, { ...visit, petId })));
    });
  }
}
