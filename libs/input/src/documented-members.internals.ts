import { ApiProperty, DECORATORS } from '@nestjs/swagger';
import { misfit } from '#runtime';

/** The names of the members that a class and its ancestors declare by `@ApiProperty`, in the order of the document. */
export function documentedMembers(type: { readonly prototype: object }): string[] {
  const names = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES_ARRAY, type.prototype) as string[] | undefined;
  // @nestjs/swagger puts a colon before each name.
  return names?.map((name) => name.slice(1)) ?? [];
}

/** @throws StartupError when the members of a class are not found: responses would have those that it does not declare */
export function checkDocumentedMembers(): void {
  class Trial {
    @ApiProperty() member: string;
  }
  const read = documentedMembers(Trial).join();
  if (read !== 'member') throw misfit('@nestjs/swagger', `the documented member of a class comes back as '${read}'`);
}
