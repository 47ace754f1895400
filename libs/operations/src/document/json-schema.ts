/** The reference of @nestjs/swagger for a parameter of unknown type. No component has this name. */
const UNKNOWN_TYPE = '#/components/schemas/Object';

/** The reference of @nestjs/swagger for bytes, which it treats as a class. */
const BUFFER = `#/components/schemas/${Buffer.name}`;

/** A schema, as a tree of its keywords. */
export type Schema = Readonly<Record<string, unknown>>;

/** Schemas by their names in the document's components. */
export type Schemas = Readonly<Record<string, Schema>>;

/** In OpenAPI 3.0 the first keyword is a boolean that modifies the second one; in JSON Schema it is the limit itself. */
const EXCLUSIVE_LIMITS = [
  ['exclusiveMinimum', 'minimum'],
  ['exclusiveMaximum', 'maximum'],
] as const;

const SCHEMA_KEYWORDS = ['items', 'additionalProperties', 'anyOf', 'oneOf', 'not'];

/**
 * Converts a schema as @nestjs/swagger writes it to OpenAPI 3.1 (JSON Schema 2020-12): `example` becomes `examples`, an
 * `allOf` of one reference becomes a reference with siblings, and exclusive limits become numbers. An array loses its
 * `properties`. The default of an optional member moves into an `allOf`.
 */
export function toJsonSchema(given: Schema): Schema {
  if (given['$ref'] === BUFFER) return { type: 'string', format: 'binary' };
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
  return reference?.['$ref'] === UNKNOWN_TYPE ? others : schema;
}

function convertProperties({ properties, required = [] }: Schema): Schemas {
  const converted = Object.entries(properties as Schemas).map(([name, property]): [string, Schema] => {
    const schema = toJsonSchema(property);
    return [name, (required as string[]).includes(name) ? schema : withDefaultApart(schema)];
  });
  return Object.fromEntries(converted);
}

/** Moves `default` into an `allOf`: openapi-typescript treats a member with a direct `default` as always present. */
function withDefaultApart(schema: Schema): Schema {
  const { default: value, ...others } = schema;
  return value === undefined ? schema : { ...others, allOf: [...((schema['allOf'] ?? []) as []), { default: value }] };
}

function convertKeywords(keywords: Schema): Schema {
  const result = { ...keywords };
  for (const keyword of SCHEMA_KEYWORDS) {
    if (keyword in result) result[keyword] = convert(result[keyword]);
  }
  for (const [exclusive, inclusive] of EXCLUSIVE_LIMITS) {
    if (result[exclusive] === true) {
      result[exclusive] = result[inclusive];
      delete result[inclusive];
    }
  }
  return result;
}

function convert(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(convert);
  return typeof value === 'object' && value !== null ? toJsonSchema(value as Schema) : value;
}
