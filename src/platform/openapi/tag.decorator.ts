import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';

export const TAG_METADATA = 'petstore:tag';

/** Puts the operations of a controller under a tag of the document, and describes the tag there. */
export function Tag(name: string, description: string): ClassDecorator {
  return applyDecorators(ApiTags(name), SetMetadata(TAG_METADATA, { name, description }));
}
