import { Body, createParamDecorator, ParseIntPipe, Query, type Type, UsePipes, ValidationPipe } from '@nestjs/common';
import { PIPES_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/internal';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { Reach } from '#runtime';
import { isInputClass } from './input-class.js';

/** A method of a controller. */
export type Handler = (...parameters: never[]) => unknown;

/** A parameter of a handler, as Nest's decorator and TypeScript describe it. */
export interface HandlerParameter {
  /** Such as `BODY` for `@Body()`; undefined for decorators made by `createParamDecorator`. */
  readonly source: keyof typeof RouteParamtypes | undefined;
  /** What the decorator takes from the source, as in `@Query('limit')`; undefined for all of it. */
  readonly data: string | undefined;
  /** Its declared class. TypeScript emits Object for interfaces, unions and unknown. */
  readonly metatype: unknown;
  /** The pipes of the controller, the handler and the parameter. */
  readonly pipes: readonly unknown[];
}

/** The metadata that `@Body()` and similar decorators write, by `<source>:<index>`. */
type Declarations = Record<string, { index: number; data?: unknown; pipes?: readonly unknown[] }>;

/** The decorated parameters of a handler. */
export function parametersOf(controller: Type, handler: Handler): HandlerParameter[] {
  const declared = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, handler.name) as Declarations | undefined;
  if (declared === undefined) return [];
  // TypeScript documents this key of emitDecoratorMetadata.
  const types = Reflect.getMetadata('design:paramtypes', controller.prototype as object, handler.name) as unknown[];
  const shared = [controller, handler].flatMap((of) => (Reflect.getMetadata(PIPES_METADATA, of) ?? []) as unknown[]);
  return Object.entries(declared).map(([key, { index, data, pipes = [] }]) => {
    return {
      source: RouteParamtypes[Number(key.split(':')[0])] as HandlerParameter['source'],
      data: typeof data === 'string' ? data : undefined,
      metatype: (types as unknown[] | undefined)?.[index],
      pipes: [...shared, ...pipes],
    };
  });
}

/** The class that a handler declares for its whole query; undefined without one. */
export function queryClassOf(controller: Type, handler: Handler): Type | undefined {
  const query = parametersOf(controller, handler).find(({ source, data }) => source === 'QUERY' && data === undefined);
  return isInputClass(query?.metatype) ? query.metatype : undefined;
}

export const HANDLER_PARAMETERS: Reach = {
  dependency: '@nestjs/common',
  touches: 'metadata of `@Body()` and the like, `createParamDecorator` and `@UsePipes`; `RouteParamtypes`',
  why: 'A body is read only for a handler that takes it, into the class of its parameter.',
  check() {
    const own = createParamDecorator(() => undefined);
    const [first, second] = [new ValidationPipe(), new ParseIntPipe()];
    class Input {}
    @UsePipes(first)
    class Trial {
      handle(@Body() _body: Input, @Query('limit', second) _limit: number, @own() _own: string): void {}
    }
    const declared = [
      { source: 'BODY', data: undefined, metatype: Input, pipes: [first] },
      { source: 'QUERY', data: 'limit', metatype: Number, pipes: [first, second] },
      { source: undefined, data: undefined, metatype: String, pipes: [first] },
    ];
    // The types of parameters are those of TypeScript, and no matter of Nest.
    Reflect.defineMetadata('design:paramtypes', [Input, Number, String], Trial.prototype, 'handle');
    const { handle } = Trial.prototype as unknown as Record<string, Handler>;
    const read = parametersOf(Trial, handle as Handler);
    const isSame = declared.every((each) => read.some((one) => isDeepStrictEqual(one, each)));
    return isSame && read.length === 3
      ? undefined
      : `parameters of a handler come back as ${inspect(read, { depth: 1 })}`;
  },
};
