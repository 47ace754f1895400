import type { PipeTransform } from '@nestjs/common';
import { GUARDS_METADATA, INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { ApplicationConfig } from '@nestjs/core';

export { ApplicationConfig };

/** The pipes of `app.useGlobalPipes` and of APP_PIPE, without those of a request. */
export function globalPipesOf(application: ApplicationConfig): readonly PipeTransform[] {
  return application.getGlobalPipes();
}

/** The guards and interceptors that stand before a handler: global ones, those of its controller and its own, as instances or classes. */
export function enhancersOf(application: ApplicationConfig, controller: object, handler: object) {
  const declared = (key: string): unknown[] =>
    [controller, handler].flatMap((target) => (Reflect.getMetadata(key, target) ?? []) as unknown[]);
  const classesOf = (wrappers: readonly { readonly metatype: unknown }[]) => wrappers.map(({ metatype }) => metatype);
  return {
    guards: [
      ...application.getGlobalGuards(),
      ...classesOf(application.getGlobalRequestGuards()),
      ...declared(GUARDS_METADATA),
    ],
    interceptors: [
      ...application.getGlobalInterceptors(),
      ...classesOf(application.getGlobalRequestInterceptors()),
      ...declared(INTERCEPTORS_METADATA),
    ],
  };
}
