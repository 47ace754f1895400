import { applyDecorators, type Type, UseInterceptors } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, getSchemaPath } from '@nestjs/swagger';
import { INVALID_CURSOR } from '#errors';
import { IntegerParameter, OpaqueParameter } from '#input';
import { FailsWith, isArraySchema, NEXT_PAGE_HEADER } from '#openapi';
import { CURSOR_PATTERN, MAX_CURSOR_LENGTH } from './keyset.js';
import { PageInterceptor } from './page.interceptor.js';

/** Items of a page if the request has no `limit`. The property must have it as its initial value. */
export const DEFAULT_PAGE_SIZE = 20;

/** Largest number of items of a page. */
export const MAX_PAGE_SIZE = 100;

/** The query parameter `limit`: 1 to {@link MAX_PAGE_SIZE}, {@link DEFAULT_PAGE_SIZE} when it is not sent. */
export function LimitParameter(description: string): PropertyDecorator {
  return IntegerParameter({
    description,
    required: false,
    minimum: 1,
    maximum: MAX_PAGE_SIZE,
    default: DEFAULT_PAGE_SIZE,
    example: DEFAULT_PAGE_SIZE,
  });
}

/** The query parameter `cursor`. */
export function CursorParameter(description: string): PropertyDecorator {
  return OpaqueParameter({ description, required: false, pattern: CURSOR_PATTERN, maxLength: MAX_CURSOR_LENGTH });
}

/**
 * For a handler that returns a `Page`: the body is the array of its items, and `Link` names the next page (RFC 8288).
 * Documents both, and the error `invalid_cursor`.
 *
 * @param type the class of the items, or an `@ArraySchema` of them
 */
export function Paged(type: Type, description: string): MethodDecorator {
  const schema = { type: 'array', maxItems: MAX_PAGE_SIZE, items: { $ref: getSchemaPath(type) } };
  return applyDecorators(
    ...(isArraySchema(type)
      ? [ApiOkResponse({ description, type, headers: NEXT_PAGE_HEADER })]
      : [ApiExtraModels(type), ApiOkResponse({ description, schema, headers: NEXT_PAGE_HEADER })]),
    FailsWith(INVALID_CURSOR),
    UseInterceptors(PageInterceptor),
  );
}
