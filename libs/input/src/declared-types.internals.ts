import type { Type } from '@nestjs/common';
import { ApiConsumes, DECORATORS } from '@nestjs/swagger';
import type { Reach } from '#runtime';

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

export const DECLARED_TYPES: Reach = {
  dependency: '@nestjs/swagger',
  touches: '`DECORATORS.API_CONSUMES`',
  why: 'Bodies are accepted in the media types that the document names.',
  check() {
    @ApiConsumes('text/trial')
    class Trial {
      @ApiConsumes('text/first', 'text/second') handle(): void {}
    }
    const { handle } = Trial.prototype as unknown as Record<string, object>;
    const read = declaredTypesOf(Trial, handle as object)?.join();
    const declared = 'text/trial,text/first,text/second';
    return read === declared ? undefined : `the media types ${declared} come back as ${read ?? 'none'}`;
  },
};
