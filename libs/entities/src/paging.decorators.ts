import { applyDecorators, type Type, UseInterceptors } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiSchema, DECORATORS, getSchemaPath } from '@nestjs/swagger';
import { FailsWith, INVALID_CURSOR } from '#errors';
import { IntegerParameter, OpaqueParameter } from '#input';
import { CURSOR_PATTERN, DEFAULT_PAGE_SIZE, MAX_CURSOR_LENGTH, MAX_PAGE_SIZE } from './keyset.js';
import { PageInterceptor } from './page.interceptor.js';

/**
 * The query parameter `limit`: 1 to {@link MAX_PAGE_SIZE}, {@link DEFAULT_PAGE_SIZE} when it is not sent.
 *
 * @example `@LimitParameter('Maximum number of visits returned.') limit = DEFAULT_PAGE_SIZE;`
 */
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

/**
 * The query parameter `cursor`.
 *
 * @example `@CursorParameter('Start of the page: copy it from the previous Link.') cursor?: string;`
 */
export function CursorParameter(description: string): PropertyDecorator {
  const form = { pattern: CURSOR_PATTERN, maxLength: MAX_CURSOR_LENGTH };
  // Any text that is no cursor gets `invalid_cursor`.
  return OpaqueParameter({ description, required: false, anyText: true, ...form });
}

/**
 * Makes the class a named array schema of at most `maxItems` items, for `@Paged` and `@ApiOkResponse({ type: … })`.
 *
 * @example @ArraySchema(Visit, 'A page of visits, by ascending id.', MAX_PAGE_SIZE) export class Visits {}
 */
export function ArraySchema(item: Type, description: string, maxItems: number): ClassDecorator {
  // In a variable: the type of `ApiSchema` lacks members that it accepts, and TypeScript rejects them in a literal.
  const schema = { description, type: 'array', maxItems, items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema));
}

/** The header field of the address of the next page, which `libs/openapi` describes. */
const headers = { Link: { $ref: '#/components/headers/NextPage' } };

/**
 * Sends the items of a `Page` as an array, with a `Link` to the next page (RFC 8288). Documents both, and `invalid_cursor`.
 *
 * @example `@Get() @Paged(Visit, 'A page of visits.') listVisits(@Query() query: ListVisitsQuery): Promise<Page<Visit>>`
 * @param type the class of the items, or an `@ArraySchema` of them
 */
export function Paged(type: Type, description: string): MethodDecorator {
  const schema = { type: 'array', maxItems: MAX_PAGE_SIZE, items: { $ref: getSchemaPath(type) } };
  const own = Reflect.getMetadata(DECORATORS.API_SCHEMA, type) as { type?: string }[] | undefined;
  return applyDecorators(
    ...(own?.some((each) => each.type === 'array')
      ? [ApiOkResponse({ description, type, headers })]
      : [ApiExtraModels(type), ApiOkResponse({ description, schema, headers })]),
    FailsWith(INVALID_CURSOR),
    UseInterceptors(PageInterceptor),
  );
}
