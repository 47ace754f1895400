import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiSchema, getSchemaPath } from '@nestjs/swagger';

/** Makes the class a named schema in the document: an array of at most `maxItems` `item`. For `@ApiOkResponse({ type: … })`. */
export function ArraySchema(item: Type, description: string, maxItems: number): ClassDecorator {
  // In a variable, because the type of `ApiSchema` lacks members that it copies. TypeScript rejects them in a literal.
  const schema = { description, type: 'array', maxItems, items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema));
}
