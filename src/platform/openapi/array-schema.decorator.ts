import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiSchema, type ApiSchemaOptions, getSchemaPath } from '@nestjs/swagger';

/** Makes a class the name that an array of `item` has in the document, for `@ApiOkResponse({ type: … })`. */
export function ArraySchema(item: Type, description: string): ClassDecorator {
  // @nestjs/swagger copies every member into the schema, but its type knows only two of them.
  const schema = { description, type: 'array', items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema as ApiSchemaOptions));
}
