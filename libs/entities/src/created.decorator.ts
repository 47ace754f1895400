import {
  applyDecorators,
  type ExecutionContext,
  HttpCode,
  Injectable,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { ApiCreatedResponse, DECORATORS } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import type { Observable } from 'rxjs';
import { StartupError } from '#errors';
import { DirectInterceptor } from '#internals';
import { Config, rootUrlOf } from '#settings';
import { escapeAddress } from './paging.decorators.js';

type Identified = Readonly<{ id: bigint | number | string }>;
type CreatingHandler = (...given: never[]) => Identified | Promise<Identified> | Observable<Identified>;
type CreatingDecorator = <H extends CreatingHandler>(
  target: object,
  name: string,
  of: TypedPropertyDescriptor<H>,
) => void;

/** The header field of the address, which `libs/openapi` describes. */
const headers = { Location: { $ref: '#/components/headers/Location' } };

/**
 * Sends 201 and what the handler returns, with its address in `Location` (RFC 9110): the path of the request, and the `id`
 * behind it. Documents both.
 *
 * @example `@Post() @Created(Visit, 'The recorded visit.') recordVisit(@Body() visit: NewVisit): Promise<Visit>`
 * @param type the class of the response
 * @throws StartupError when the class documents no `id`
 */
export function Created(type: Type<Identified>, description: string): CreatingDecorator {
  const members = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES_ARRAY, type.prototype as object) as unknown;
  // @nestjs/swagger puts a colon before each name.
  if (!Array.isArray(members) || !members.includes(':id')) {
    throw new StartupError(`@Created(${type.name}, '${description}') needs a class with a documented id.`);
  }
  const response = ApiCreatedResponse({ description, type, headers });
  return applyDecorators(HttpCode(201), response, UseInterceptors(CreatedInterceptor));
}

@Injectable()
class CreatedInterceptor extends DirectInterceptor {
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
