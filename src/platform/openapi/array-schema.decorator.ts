import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiSchema, getSchemaPath } from '@nestjs/swagger';

/** Makes the class a named array schema of at most `maxItems` items, for `@ApiOkResponse({ type: … })`. */
export function ArraySchema(item: Type, description: string, maxItems: number): ClassDecorator {
  // In a variable: the type of `ApiSchema` lacks members that it accepts, and TypeScript rejects them in a literal.
  const schema = { description, type: 'array', maxItems, items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema));
}
