import { DECORATORS, generateSchema } from '@nestjs/swagger';

/**
 * Runs `describe`, in which @nestjs/swagger asks for the metadata of each class that gets a schema. It would take the schema of another
 * class of the same name, and warn at most.
 *
 * @returns the document, and each name that classes with different schemas have, with the members of each of them
 */
export function withNamesakes<Document>(describe: () => Document): [Document, namesakes: Map<string, string[]>] {
  const { getOwnMetadata } = Reflect;
  const classes = new Map<string, Map<string, string>>();
  const asked = new Set<{ readonly name: string }>();
  Reflect.getOwnMetadata = (key: unknown, target: object, ...property: []) => {
    if (key === DECORATORS.API_SCHEMA) asked.add(target as { readonly name: string });
    return getOwnMetadata(key, target, ...property) as unknown;
  };
  let document: Document;
  try {
    document = describe();
  } finally {
    Reflect.getOwnMetadata = getOwnMetadata;
  }
  for (const type of asked) {
    const [given] = ((getOwnMetadata(DECORATORS.API_SCHEMA, type) ?? []) as { name?: string }[]).slice(-1);
    const name = given?.name ?? type.name;
    const schema = generateSchema(type as never).schemas[name];
    const members = Object.keys(schema?.properties ?? {}).join(', ');
    classes.set(name, (classes.get(name) ?? new Map<string, string>()).set(JSON.stringify(schema), members));
  }
  const several = [...classes].filter(([, schemas]) => schemas.size > 1);
  return [document, new Map(several.map(([name, schemas]) => [name, [...schemas.values()]]))];
}
