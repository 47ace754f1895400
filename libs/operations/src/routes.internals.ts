import {
  Controller,
  HttpCode,
  type MessageEvent,
  Post,
  RequestMethod,
  Sse,
  type Type,
  Version,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import {
  HTTP_CODE_METADATA,
  METHOD_METADATA,
  PATH_METADATA,
  SSE_METADATA,
  VERSION_METADATA,
} from '@nestjs/common/constants.js';
import { inspect, isDeepStrictEqual } from 'node:util';
import { NEVER, type Observable } from 'rxjs';
import type { Reach } from '#runtime';

/** What Nest's decorators declare of the route of a handler. */
export interface Route {
  readonly method: RequestMethod;
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
    status: Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined,
    isStream: Reflect.hasMetadata(SSE_METADATA, handler),
    isNeutral: [versions].flat().includes(VERSION_NEUTRAL),
  };
}

export const ROUTES: Reach = {
  dependency: '@nestjs/common',
  touches: 'metadata of `@Get` and the like, `@HttpCode`, `@Sse`, `@Version`',
  why: 'Which operations exist, and the status and the kind of their responses.',
  check() {
    @Controller({ version: VERSION_NEUTRAL })
    class Trial {
      @Post('trial') @HttpCode(202) accept(): void {}
      @Sse('trial') @Version('7') stream(): Observable<MessageEvent> {
        return NEVER;
      }
      other(): void {}
    }
    const { accept, stream, other } = Trial.prototype as unknown as Record<string, object>;
    const declared = [
      [accept, { method: RequestMethod.POST, status: 202, isStream: false, isNeutral: true }],
      [stream, { method: RequestMethod.GET, status: undefined, isStream: true, isNeutral: false }],
      [other, undefined],
    ] as const;
    const wrong = declared.find(([handler, route]) => !isDeepStrictEqual(routeOf(Trial, handler as object), route));
    return wrong && `the route ${inspect(wrong[1])} comes back as ${inspect(routeOf(Trial, wrong[0] as object))}`;
  },
};
