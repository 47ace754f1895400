import { type RequestMethod, type Type, VERSION_NEUTRAL } from '@nestjs/common';
import {
  HTTP_CODE_METADATA,
  METHOD_METADATA,
  PATH_METADATA,
  SSE_METADATA,
  VERSION_METADATA,
} from '@nestjs/common/constants.js';
import { DECORATORS } from '@nestjs/swagger';

/** What the decorators of Nest and @nestjs/swagger declare of the route of a handler. */
export interface Route {
  readonly method: RequestMethod;
  /** The operationId of `@ApiOperation`. */
  readonly operationId: string | undefined;
  /** The status of `@HttpCode`. */
  readonly status: number | undefined;
  /** Whether it has `@Sse()`. */
  readonly isStream: boolean;
  /** Whether it belongs to no version. */
  readonly isNeutral: boolean;
}

/** The route of a method of a controller; undefined for a method that is no handler. */
export function routeOf(controller: Type, handler: object): Route | undefined {
  if (!Reflect.hasMetadata(PATH_METADATA, handler)) return undefined;
  // The handler's decorator overrides the controller's.
  const versions: unknown =
    Reflect.getMetadata(VERSION_METADATA, handler) ?? Reflect.getMetadata(VERSION_METADATA, controller);
  return {
    method: Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod,
    operationId: (Reflect.getMetadata(DECORATORS.API_OPERATION, handler) as { operationId?: string } | undefined)
      ?.operationId,
    status: Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined,
    isStream: Reflect.hasMetadata(SSE_METADATA, handler),
    isNeutral: [versions].flat().includes(VERSION_NEUTRAL),
  };
}
