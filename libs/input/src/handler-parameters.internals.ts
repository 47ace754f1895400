import type { Type } from '@nestjs/common';
import { PIPES_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/internal';
import { isInputClass } from './input-class.js';

/** A method of a controller. */
export type Handler = (...parameters: never[]) => unknown;

/** The metadata of `@Body()` and the like, by `<source>:<index>`. */
type Declarations = Record<string, { index: number; data?: unknown; pipes?: readonly unknown[] }>;

export type Source = keyof typeof RouteParamtypes | undefined;

/** The decorated parameters of a handler, as Nest's decorators and TypeScript describe them. */
export function parametersOf(controller: Type, handler: Handler) {
  const declared = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, handler.name) as Declarations | undefined;
  if (declared === undefined) return [];
  // TypeScript documents this key of emitDecoratorMetadata.
  const types = Reflect.getMetadata('design:paramtypes', controller.prototype as object, handler.name) as unknown[];
  const shared = [controller, handler].flatMap((of) => (Reflect.getMetadata(PIPES_METADATA, of) ?? []) as unknown[]);
  return Object.entries(declared).map(([key, { index, data, pipes = [] }]) => {
    return {
      // Such as `BODY` for `@Body()`; undefined for decorators made by `createParamDecorator`.
      source: RouteParamtypes[Number(key.split(':')[0])] as Source,
      // What the decorator takes from the source, as in `@Query('limit')`; undefined for all of it.
      data: typeof data === 'string' ? data : undefined,
      // Its declared class. TypeScript emits Object for interfaces, unions and unknown; some compilers emit nothing.
      metatype: (types as unknown[] | undefined)?.[index],
      pipes: [...shared, ...pipes],
      hasOwnPipe: pipes.length > 0,
    };
  });
}

/** The class that a handler declares for its whole query; undefined without one. */
export function queryClassOf(controller: Type, handler: Handler): Type | undefined {
  const query = parametersOf(controller, handler).find(({ source, data }) => source === 'QUERY' && data === undefined);
  return isInputClass(query?.metatype) ? query.metatype : undefined;
}
