import { Injectable } from '@nestjs/common';
import { ApiError, defineError, type Page } from '#platform';
import type { ListVisitsQuery, NewVisit, Visit } from './visit.dto.js';
import { VisitsRepository } from './visits.repository.js';

export const VISITS_FULL = defineError('visits_full', 409, 'The pet has as many visits as it may have.');

/** Largest number of visits per pet. */
const MAX_VISITS = 3;

/** Visits of pets. */
@Injectable()
export class VisitsService {
  constructor(private readonly repository: VisitsRepository) {}

  /** @throws ApiError INVALID_CURSOR */
  list(query: ListVisitsQuery): Promise<Page<Visit>> {
    return this.repository.list(query);
  }

  /** @throws ApiError VISITS_FULL */
  async record(visit: NewVisit): Promise<Visit> {
    const recorded = await this.repository.insertUpTo(MAX_VISITS, visit);
    if (recorded === undefined) throw new ApiError(VISITS_FULL, `A pet may have ${MAX_VISITS} visits.`);
    return recorded;
  }
}
