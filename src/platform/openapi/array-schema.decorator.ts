import { applyDecorators, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiSchema, getSchemaPath } from '@nestjs/swagger';

/** Makes the class a named schema in the document: an array of `item`. For `@ApiOkResponse({ type: … })`. */
export function ArraySchema(item: Type, description: string): ClassDecorator {
  // In a variable, because the type of `ApiSchema` lacks members that it copies. TypeScript rejects them in a literal.
  const schema = { description, type: 'array', items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema));
}
