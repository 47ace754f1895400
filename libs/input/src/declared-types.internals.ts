import type { Type } from '@nestjs/common';
import { DECORATORS } from '@nestjs/swagger';

/**
 * The media types of `@ApiConsumes` of a handler and its controller, in lower case and without parameters, which requests may have
 * or not; undefined without any.
 */
export function declaredTypesOf(controller: Type, handler: object): string[] | undefined {
  const declared = [controller, handler].flatMap(
    (target) => (Reflect.getMetadata(DECORATORS.API_CONSUMES, target) ?? []) as string[],
  );
  const types = declared.map((type) => type.replace(/\s*;.*$/, '').toLowerCase());
  return types.length > 0 ? [...new Set(types)] : undefined;
}
