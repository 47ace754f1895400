import { ApiProperty, DECORATORS } from '@nestjs/swagger';
import type { Reach } from '#runtime';

/** The names of the members that a class and its ancestors declare by `@ApiProperty`, in the order of the document. */
export function documentedMembers(type: { readonly prototype: object }): string[] {
  const names = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES_ARRAY, type.prototype) as string[] | undefined;
  // @nestjs/swagger puts a colon before each name.
  return names?.map((name) => name.slice(1)) ?? [];
}

export const DOCUMENTED_MEMBERS: Reach = {
  dependency: '@nestjs/swagger',
  touches: '`DECORATORS.API_MODEL_PROPERTIES_ARRAY`, and the colon before each name',
  why: 'Responses are written with the members of `@ApiProperty`, in the order of the document.',
  check() {
    class Ancestor {
      @ApiProperty() first: string;
    }
    class Trial extends Ancestor {
      @ApiProperty() second: string;
    }
    const read = documentedMembers(Trial).join();
    return read === 'first,second' ? undefined : `the members first,second of a class come back as '${read}'`;
  },
};
