import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiSchema, getSchemaPath } from '@nestjs/swagger';

/** Makes a class the name that an array of `item` has in the document, for `@ApiOkResponse({ type: … })`. */
export function ArraySchema(item: Type, description: string): ClassDecorator {
  // A variable, because the decorator's type knows only some of the members that it copies into the schema.
  const schema = { description, type: 'array', items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema));
}
