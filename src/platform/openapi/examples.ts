import type { Schema, Schemas } from './json-schema.js';

/**
 * An example of what a schema describes: its own first, else one made of the examples of its members or items. Undefined
 * when a required member has none.
 *
 * @param schemas the named schemas, which references stand for
 */
export function exampleOf(schema: Schema, schemas: Schemas = {}): unknown {
  const [own] = (schema['examples'] ?? []) as unknown[];
  if (own !== undefined) return own;
  if (typeof schema['$ref'] === 'string') {
    const named = schemas[schema['$ref'].replace('#/components/schemas/', '')];
    return named && exampleOf(named, schemas);
  }
  if (schema['type'] === 'array') {
    const item = exampleOf(schema['items'] as Schema, schemas);
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
