import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { IsPositive } from 'class-validator';
import {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  int64Of,
  Int64Property,
  LimitParameter,
  OpaqueParameter,
  TextProperty,
} from '#platform';
import type { VisitEntity } from './visit.entity.js';

@ApiSchema({ description: 'A visit to record.' })
export class NewVisit {
  @Int64Property({ description: 'The pet that was seen.', example: 1042 })
  petId: bigint;

  @TextProperty({ description: 'Why it came.', example: 'Vaccination', minLength: 1, maxLength: 200, notBlank: true })
  reason: string;

  @IsPositive()
  @ApiProperty({ description: 'Its weight in kilograms.', minimum: 0, exclusiveMinimum: true, example: 12.5 })
  weightKg: number;
}

@ApiSchema({ description: 'A recorded visit.' })
export class Visit extends NewVisit {
  @Int64Property({ description: 'Unique identifier of the visit.', example: 1 })
  id: bigint;
}

export class ListVisitsQuery {
  @LimitParameter('Maximum number of visits returned.')
  limit = DEFAULT_PAGE_SIZE;

  @OpaqueParameter({ description: 'Return only visits for this reason.', required: false })
  reason?: string;

  @CursorParameter('Start of the page: copy it from the previous `Link` and keep the same `reason`.')
  cursor?: string;
}

export function toVisit({ id, petId, reason, weightKg }: VisitEntity): Visit {
  return Object.assign(new Visit(), { id: int64Of(id), petId: int64Of(petId), reason, weightKg });
}
