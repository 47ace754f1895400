type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose value is a schema, or an array of them. */
const SCHEMA_KEYWORDS = new Set(['items', 'additionalProperties', 'allOf', 'anyOf', 'oneOf', 'not']);

/** Keywords that OpenAPI 3.0 has as flags beside the limit they change. */
const EXCLUSIVE_LIMITS = [
  ['exclusiveMinimum', 'minimum'],
  ['exclusiveMaximum', 'maximum'],
] as const;

/**
 * What @nestjs/swagger writes as a schema, in the dialect of OpenAPI 3.1 (JSON Schema 2020-12): `examples` for `example`,
 * a reference with siblings for an `allOf` of one reference, exclusive limits as numbers, and no `properties` in what is
 * not an object.
 */
export function toJsonSchema(schema: Schema): Schema {
  const { type, example, allOf, properties, ...keywords } = schema;
  const parts = (allOf ?? []) as Schema[];
  const isReference = parts.length === 1 && parts[0]?.['$ref'] !== undefined;
  const result: Record<string, unknown> = isReference ? { ...parts[0] } : { ...(type !== undefined && { type }) };
  for (const [keyword, value] of Object.entries(keywords)) {
    result[keyword] = SCHEMA_KEYWORDS.has(keyword) ? convert(value) : value;
  }
  if (parts.length > 0 && !isReference) {
    result['allOf'] = convert(parts);
  }
  if (properties !== undefined && type !== 'array') {
    const entries = Object.entries(properties as Record<string, Schema>);
    result['properties'] = Object.fromEntries(entries.map(([name, property]) => [name, toJsonSchema(property)]));
  }
  for (const [exclusive, inclusive] of EXCLUSIVE_LIMITS) {
    if (result[exclusive] === true) {
      result[exclusive] = result[inclusive];
      delete result[inclusive];
    } else if (result[exclusive] === false) {
      delete result[exclusive];
    }
  }
  if (example !== undefined) {
    result['examples'] = [example];
  }
  return result;
}

function convert(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(convert);
  }
  return typeof value === 'object' && value !== null ? toJsonSchema(value as Schema) : value;
}
