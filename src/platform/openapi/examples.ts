import type { Schema, Schemas } from './json-schema.js';

/**
 * An example for a schema: its own first example, else one made from the examples of its members or items. Undefined if a
 * required member has no example, or there is no schema.
 *
 * @param schemas the named schemas, to resolve references
 */
export function exampleOf(schema: Schema | undefined, schemas: Schemas = {}): unknown {
  if (schema === undefined) return undefined;
  const [own] = (schema['examples'] ?? []) as unknown[];
  if (own !== undefined) return own;
  if (typeof schema['$ref'] === 'string') {
    const { [schema['$ref'].replace('#/components/schemas/', '')]: named, ...others } = schemas;
    // Removes the schema itself, because it may refer to itself.
    return exampleOf(named, others);
  }
  if (schema['type'] === 'array') {
    const item = exampleOf(schema['items'] as Schema | undefined, schemas);
    return item === undefined ? undefined : [item];
  }
  return schema['type'] === 'object' ? exampleOfObject(schema, schemas) : undefined;
}

function exampleOfObject({ properties = {}, required = [] }: Schema, schemas: Schemas): unknown {
  const members = Object.entries(properties as Schemas)
    .map(([name, property]): [string, unknown] => [name, exampleOf(property, schemas)])
    .filter(([, example]) => example !== undefined);
  const names = members.map(([name]) => name);
  return (required as string[]).every((name) => names.includes(name)) ? Object.fromEntries(members) : undefined;
}
