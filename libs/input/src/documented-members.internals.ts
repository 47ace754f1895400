import { DECORATORS } from '@nestjs/swagger';

/** The names of the members that a class and its ancestors declare by `@ApiProperty`, in the order of the document. */
export function documentedMembers(type: { readonly prototype: object }): string[] {
  const names = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES_ARRAY, type.prototype) as string[] | undefined;
  // @nestjs/swagger puts a colon before each name.
  return names?.map((name) => name.slice(1)) ?? [];
}
