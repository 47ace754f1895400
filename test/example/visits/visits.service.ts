import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { ApiError, Database, defineError, type Page } from '#platform';
import { type ListVisitsQuery, type NewVisit, toVisit, type Visit, VISITS_ORDER } from './visit.dto.js';
import { VisitEntity } from './visit.entity.js';

export const VISITS_FULL = defineError('visits_full', 409, 'The animal has as many visits as it may have.');

/** Largest number of visits per animal. */
const MAX_VISITS = 3;

@Injectable()
export class VisitsService {
  constructor(
    @InjectRepository(VisitEntity) private readonly visits: Repository<VisitEntity>,
    private readonly database: Database,
  ) {}

  /** @throws ApiError INVALID_CURSOR */
  list(query: ListVisitsQuery): Promise<Page<VisitEntity>> {
    const { reason } = query;
    const visits = this.visits.createQueryBuilder('visit');
    if (reason !== undefined) visits.where('visit.reason = :reason', { reason });
    return VISITS_ORDER.read(visits, query, { reason });
  }

  /** @throws ApiError VISITS_FULL */
  async record(visit: NewVisit): Promise<Visit> {
    const petId = String(visit.petId);
    return this.database.transaction(async ({ manager }) => {
      // Requests for one animal wait for each other: two that count at the same moment would both find room.
      await manager.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`visits of ${petId}`]);
      if ((await manager.countBy(VisitEntity, { petId })) >= MAX_VISITS) {
        throw new ApiError(VISITS_FULL, `An animal may have ${MAX_VISITS} visits.`);
      }
      return toVisit(await manager.save(manager.create(VisitEntity, { ...visit, petId })));
    });
  }
}
