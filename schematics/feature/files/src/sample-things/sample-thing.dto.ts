import { ApiSchema } from '@nestjs/swagger';
import { CursorParameter, DEFAULT_PAGE_SIZE, int64Of, Int64Property, LimitParameter, TextProperty } from '#platform';
import type { SampleThingEntity } from './sample-thing.entity.js';

/** The id, as responses and paths have it. */
export const ID = { description: 'Unique identifier, assigned by the service on creation.', example: 1 };

/** Body of createSampleThing. */
@ApiSchema({ description: 'The sample thing to add. Members that are not listed here are ignored.' })
export class NewSampleThing {
  @TextProperty({ description: 'Its name.', example: 'First', minLength: 1, maxLength: 255, notBlank: true })
  name: string;
}

/** What createSampleThing, getSampleThing and listSampleThings return. */
@ApiSchema({ description: 'The sample thing as it is stored.' })
export class SampleThing extends NewSampleThing {
  @Int64Property(ID)
  id: bigint;
}

/** Query of listSampleThings. */
export class ListSampleThingsQuery {
  @LimitParameter('Maximum number of sample things returned.')
  limit = DEFAULT_PAGE_SIZE;

  @CursorParameter("Start of the page: copy it from the previous page's `Link`.")
  cursor?: string;
}

export function toSampleThing({ id, name }: SampleThingEntity): SampleThing {
  return Object.assign(new SampleThing(), { id: int64Of(id), name });
}
