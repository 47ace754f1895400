import {
  applyDecorators,
  type ExecutionContext,
  HttpCode,
  Injectable,
  SetMetadata,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { ApiCreatedResponse, ApiExtraModels, ApiOkResponse, ApiSchema, getSchemaPath } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { unescape } from 'node:querystring';
import type { Observable } from 'rxjs';
import { FailsWith, INVALID_CURSOR } from '#errors';
import { StartupError } from '#runtime';
import { type Handler, IntegerParameter, OpaqueParameter, queryClassOf } from '#input';
import { DirectInterceptor, TO_SENT_METADATA, type ToSent } from '#operations';
import { Config, rootUrlOf } from '#settings';
import { CURSOR_PATTERN, DEFAULT_PAGE_SIZE, MAX_CURSOR_LENGTH, MAX_PAGE_SIZE, type Page } from './cursors.js';

/**
 * The query parameter `limit`: 1 to `maximum`, and the initial value of the property when it is not sent.
 *
 * @example `@LimitParameter('Maximum number of visits returned.') limit = DEFAULT_PAGE_SIZE;`
 * @param maximum at most {@link MAX_PAGE_SIZE}, and that by default
 * @throws StartupError when `maximum` is larger
 */
export function LimitParameter(description: string, maximum = MAX_PAGE_SIZE): PropertyDecorator {
  if (maximum > MAX_PAGE_SIZE) throw new StartupError(`A page has at most ${MAX_PAGE_SIZE} items, not ${maximum}.`);
  const example = Math.min(DEFAULT_PAGE_SIZE, maximum);
  return IntegerParameter({ description, required: false, minimum: 1, maximum, example });
}

/**
 * The query parameter `cursor`. It has no example: a cursor belongs to one filter, and programs send examples with any.
 *
 * @example `@CursorParameter('Start of the page: copy it from the previous Link.') cursor?: string;`
 */
export function CursorParameter(description: string): PropertyDecorator {
  const form = { pattern: CURSOR_PATTERN, maxLength: MAX_CURSOR_LENGTH };
  // Any text that is no cursor gets `invalid_cursor`.
  return OpaqueParameter({ description, required: false, anyText: true, ...form });
}

const ARRAY_SCHEMA = 'platform:array-schema';

/**
 * Makes the class a named array schema of at most `maxItems` items, for `@Paged` and `@ApiOkResponse({ type: … })`.
 *
 * @example @ArraySchema(Visit, 'A page of visits, by ascending id.', MAX_PAGE_SIZE) export class Visits {}
 */
export function ArraySchema(item: Type, description: string, maxItems: number): ClassDecorator {
  // In a variable: the type of `ApiSchema` lacks members that it accepts, and TypeScript rejects them in a literal.
  const schema = { description, type: 'array', maxItems, items: { $ref: getSchemaPath(item) } };
  return applyDecorators(ApiExtraModels(item), ApiSchema(schema), SetMetadata(ARRAY_SCHEMA, true));
}

/**
 * Sends the items of a `Page` as an array, with a `Link` to the next page (RFC 8288). Documents both, and `invalid_cursor`;
 * `@ApiOkResponse({ headers })` beside it adds header fields.
 *
 * Interceptors get the page as the handler has returned it, so a cache may keep it, also as JSON, and send items and `Link` again.
 *
 * @example `@Get() @Paged(Visit, 'A page of visits.') listVisits(@Query() query: ListVisitsQuery): Promise<Page<Visit>>`
 * @param type the class of the items, or an `@ArraySchema` of them
 */
export function Paged(type: Type, description: string): MethodDecorator {
  const ref = { $ref: getSchemaPath(type) };
  const isArray = Reflect.hasMetadata(ARRAY_SCHEMA, type);
  // As a schema, because `@ApiOkResponse` above would remove a type. The document adds the header field.
  const schema = isArray ? ref : { type: 'array', maxItems: MAX_PAGE_SIZE, items: ref };
  return (prototype, name, descriptor) => {
    const { constructor: controller } = prototype as { constructor: Type };
    const handler = (descriptor as PropertyDescriptor).value as Handler;
    const toSent = ({ publicBaseUrl }: Config): ToSent => {
      const root = rootUrlOf(publicBaseUrl);
      const Query = queryClassOf(controller, handler);
      const { limit } = Query ? (new Query() as { limit?: number }) : {};
      return (body, response) => {
        if (typeof body !== 'object' || body === null || !isPage(body)) return body;
        const { items, nextCursor } = body;
        if (nextCursor !== undefined)
          response.appendHeader('Link', `<${root}${nextAddress(response.req, limit)}cursor=${nextCursor}>; rel="next"`);
        return items;
      };
    };
    applyDecorators(
      ApiExtraModels(type),
      ApiOkResponse({ description, schema }),
      FailsWith(INVALID_CURSOR),
      SetMetadata(TO_SENT_METADATA, toSent),
    )(prototype, name, descriptor as TypedPropertyDescriptor<unknown>);
  };
}

/**
 * The address of the next page of a list without its cursor: as requested, the limit first.
 *
 * @param limit that of a request without it
 */
function nextAddress({ path, originalUrl }: Request, limit?: number): string {
  const start = originalUrl.indexOf('?');
  let first = limit === undefined ? '' : `limit=${limit}&`;
  let filters = '';
  for (const parameter of start === -1 ? [] : originalUrl.slice(start + 1).split('&')) {
    const name = nameOf(parameter);
    if (name === 'limit') first = `${escapeAddress(parameter)}&`;
    else if (name !== 'cursor' && name !== '') filters += `${escapeAddress(parameter)}&`;
  }
  return `${escapeAddress(path)}?${first}${filters}`;
}

/** Also of a page that a store has kept as JSON. */
function isPage(body: object): body is Page<unknown> {
  const { items, nextCursor = '' } = body as Partial<Page<unknown>>;
  const hasOthers = Object.keys(body).some((name) => name !== 'items' && name !== 'nextCursor');
  return Array.isArray(items) && typeof nextCursor === 'string' && !hasOthers;
}

/** Escapes the characters that a URL must not have: they could end a link. Escapes of the client stay as they are. */
function escapeAddress(address: string): string {
  return /^[\w/?=&.-]*$/.test(address) ? address : encodeURI(address).replaceAll('%25', '%');
}

function nameOf(parameter: string): string {
  const end = parameter.indexOf('=');
  const name = end === -1 ? parameter : parameter.slice(0, end);
  return name.includes('%') ? unescape(name) : name;
}

type Identified = Readonly<{ id: bigint | number | string }>;
type CreatingHandler = (...given: never[]) => Identified | Promise<Identified> | Observable<Identified>;
type CreatingDecorator = <H extends CreatingHandler>(
  target: object,
  name: string,
  of: TypedPropertyDescriptor<H>,
) => void;

/**
 * Sends 201 and what the handler returns, with its address in `Location` (RFC 9110): the path of the request, and the `id`
 * behind it. Documents both.
 *
 * @example `@Post() @Created(Visit, 'The recorded visit.') recordVisit(@Body() visit: NewVisit): Promise<Visit>`
 * @param type the class of the response, which declares an `id`
 */
export function Created(type: Type<Identified>, description: string): CreatingDecorator {
  // The document describes the header field.
  const headers = { Location: { $ref: '#/components/headers/Location' } };
  const response = ApiCreatedResponse({ description, type, headers });
  return applyDecorators(HttpCode(201), response, UseInterceptors(CreatedInterceptor));
}

@Injectable()
class CreatedInterceptor extends DirectInterceptor {
  /** The beginning of every address. */
  private readonly root: string;

  constructor({ publicBaseUrl }: Config) {
    super();
    this.root = rootUrlOf(publicBaseUrl);
  }

  override after(result: unknown, context: ExecutionContext): unknown {
    const { id } = (result ?? {}) as Partial<Identified>;
    if (id === undefined) {
      throw new Error(`${context.getClass().name}.${context.getHandler().name} has @Created, but returned no id.`);
    }
    // The path of a request is spelt as that of its route: routing is strict and minds the case.
    const { path } = context.getArgByIndex<Request>(0);
    const end = typeof id === 'string' ? encodeURIComponent(id) : id;
    context.getArgByIndex<Response>(1).setHeader('Location', `${this.root}${escapeAddress(path)}/${end}`);
    return result;
  }
}
