/** A schema, as a tree of its keywords. */
export type Schema = Readonly<Record<string, unknown>>;

/** Schemas by their names in the document's components. */
export type Schemas = Readonly<Record<string, Schema>>;

const SCHEMA_KEYWORDS = ['items', 'additionalProperties', 'anyOf', 'oneOf', 'not'];

/**
 * Converts a schema as @nestjs/swagger writes it to OpenAPI 3.1 (JSON Schema 2020-12): `example` becomes `examples`, an
 * `allOf` of one reference becomes a reference with siblings, and exclusive limits become numbers. An array loses its
 * `properties`. The default of an optional member moves into an `allOf`.
 */
export function toJsonSchema(given: Schema): Schema {
  // @nestjs/swagger treats bytes as a class.
  if (given['$ref'] === '#/components/schemas/Buffer') return { type: 'string', format: 'binary' };
  const { type, example, allOf = [], properties, ...keywords } = withoutUnknownType(given);
  const parts = allOf as Schema[];
  const [reference] = parts.length === 1 && parts[0]?.['$ref'] !== undefined ? parts : [];
  return {
    ...(reference ?? (type !== undefined && { type })),
    ...convertKeywords(keywords),
    ...(parts.length > 0 && !reference && { allOf: convert(parts) }),
    ...(properties !== undefined && type !== 'array' && { properties: convertProperties(given) }),
    ...(example !== undefined && { examples: [example] }),
  };
}

/**
 * TypeScript emits no type for a parameter such as `take = 20`, and @nestjs/swagger then refers to a component that does not
 * exist.
 */
function withoutUnknownType(schema: Schema): Schema {
  const { $ref, allOf, ...others } = schema;
  const [reference] = (allOf ?? [{ $ref }]) as Schema[];
  return reference?.['$ref'] === '#/components/schemas/Object' ? others : schema;
}

/** An optional member's `default` moves into an `allOf`: openapi-typescript treats a member with a direct one as always present. */
function convertProperties({ properties, required = [] }: Schema): Schemas {
  const converted = Object.entries(properties as Schemas).map(([name, property]): [string, Schema] => {
    const schema = toJsonSchema(property);
    const { default: value, allOf = [], ...others } = schema;
    if (value === undefined || (required as string[]).includes(name)) return [name, schema];
    return [name, { ...others, allOf: [...(allOf as []), { default: value }] }];
  });
  return Object.fromEntries(converted);
}

function convertKeywords(keywords: Schema): Schema {
  const result = { ...keywords };
  for (const keyword of SCHEMA_KEYWORDS) {
    if (keyword in result) result[keyword] = convert(result[keyword]);
  }
  // In OpenAPI 3.0 the exclusive keyword is a boolean that modifies the other one.
  for (const limit of ['Minimum', 'Maximum']) {
    const inclusive = limit.toLowerCase();
    if (result[`exclusive${limit}`] !== true) continue;
    result[`exclusive${limit}`] = result[inclusive];
    delete result[inclusive];
  }
  return result;
}

function convert(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convert);
  return typeof value === 'object' && value !== null ? toJsonSchema(value as Schema) : value;
}
