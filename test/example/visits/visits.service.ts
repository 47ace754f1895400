import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { ApiError } from '../../../src/platform/errors/api-error.js';
import { defineError } from '../../../src/platform/errors/error-catalogue.js';
import type { Page } from '../../../src/platform/paging/keyset.js';
import { type ListVisitsQuery, type NewVisit, toVisit, type Visit, VISITS_ORDER } from './visit.dto.js';
import { VisitEntity } from './visit.entity.js';

export const VISITS_FULL = defineError('visits_full', 409, 'The animal has as many visits as it may have.');

/** Largest number of visits per animal. */
const MAX_VISITS = 3;

@Injectable()
export class VisitsService {
  constructor(@InjectRepository(VisitEntity) private readonly visits: Repository<VisitEntity>) {}

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
    if ((await this.visits.countBy({ petId })) >= MAX_VISITS) {
      throw new ApiError(VISITS_FULL, `An animal may have ${MAX_VISITS} visits.`);
    }
    return toVisit(await this.visits.save(this.visits.create({ ...visit, petId })));
  }
}
