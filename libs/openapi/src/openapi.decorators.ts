import { applyDecorators, SetMetadata, type Type } from '@nestjs/common';
import { ApiExtraModels, ApiSchema, ApiTags, DECORATORS, getSchemaPath } from '@nestjs/swagger';
import type { ErrorDefinition } from '#errors';

export const TAG_METADATA = 'platform:tag';
export const FAILURES_METADATA = 'platform:failures';

/** Puts the operations of a controller under a tag of the document, and describes the tag there. */
export function Tag(name: string, description: string): ClassDecorator {
  return applyDecorators(ApiTags(name), SetMetadata(TAG_METADATA, { name, description }));
}

/**
 * Documents the errors that the handler itself throws. The platform's errors (authentication, scopes, body, rate limit,
 * 500, 503 …) are documented automatically.
 */
export function FailsWith(...errors: [ErrorDefinition, ...ErrorDefinition[]]): MethodDecorator {
  return SetMetadata(FAILURES_METADATA, errors);
}

/** Makes the class a named array schema of at most `maxItems` items, for `@ApiOkResponse({ type: … })`. */
export function ArraySchema(item: Type, description: string, maxItems: number): ClassDecorator {
  // In a variable: the type of `ApiSchema` lacks members that it accepts, and TypeScript rejects them in a literal.
  const schema = { description, type: 'array', maxItems, items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema));
}

/** Whether a class is an {@link ArraySchema}. */
export function isArraySchema(type: Type): boolean {
  const schemas = Reflect.getMetadata(DECORATORS.API_SCHEMA, type) as { type?: string }[] | undefined;
  return schemas?.some((schema) => schema.type === 'array') === true;
}
