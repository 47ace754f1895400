import { DECORATORS, generateSchema } from '@nestjs/swagger';
import { isDeepStrictEqual } from 'node:util';
import { StartupError } from '#runtime';

type Class = new () => Readonly<Record<string | symbol, unknown>>;
type Options = Readonly<Record<string, unknown>>;

/**
 * Runs `describe`, in which @nestjs/swagger asks for the metadata of each class that gets a schema, and of its members.
 *
 * The default of a member that may be missing becomes the initial value that its class gives it, because handlers get that value.
 *
 * @throws StartupError when an initial value is beyond the limits of its member, or two classes of one name have different schemas:
 *   @nestjs/swagger would take one of them, and warn at most
 */
export function withClasses<Document>(describe: () => Document): Document {
  const { getMetadata, getOwnMetadata } = Reflect;
  const classes = new Set<Class>();
  Reflect.getOwnMetadata = (key: unknown, target: object, ...property: []) => {
    if (key === DECORATORS.API_SCHEMA) classes.add(target as Class);
    return getOwnMetadata(key, target, ...property) as unknown;
  };
  Reflect.getMetadata = (key: unknown, target: object, ...property: [] | [string | symbol]) => {
    const known = getMetadata(key, target, ...(property as [string])) as Options | undefined;
    const [name] = property;
    if (key !== DECORATORS.API_MODEL_PROPERTIES || name === undefined || known === undefined) return known;
    return withInitialValue(target.constructor as Class, name, known);
  };
  try {
    const document = describe();
    refuseNamesakes(classes);
    return document;
  } finally {
    Object.assign(Reflect, { getMetadata, getOwnMetadata });
  }
}

function refuseNamesakes(classes: ReadonlySet<Class>): void {
  const schemas = new Map<string, { properties?: object } | undefined>();
  for (const type of classes) {
    const given = (Reflect.getOwnMetadata(DECORATORS.API_SCHEMA, type) ?? []) as { name?: string }[];
    const name = given.at(-1)?.name ?? type.name;
    const schema = generateSchema(type).schemas[name];
    if (schemas.has(name) && !isDeepStrictEqual(schemas.get(name), schema)) {
      const membersOf = [schemas.get(name), schema].map((each) => Object.keys(each?.properties ?? {}).join(', '));
      throw new StartupError(
        `The document can describe one class ${name} only, and there are ` +
          `${membersOf.map((members) => `${name} { ${members} }`).join(' and ')}. ` +
          `Name one of them: @ApiSchema({ name: 'Another${name}' }).`,
      );
    }
    schemas.set(name, schema);
  }
}

function withInitialValue(type: Class, name: string | symbol, options: Options): Options {
  const { required, nullable, minimum, maximum } = options;
  // Classes of responses may need arguments.
  if ((required !== false && !('default' in options)) || type.length > 0) return options;
  const value = documentable(new type()[name]);
  if (value === undefined || (value === null && nullable !== true)) return options;
  // Of null, limits say nothing.
  if (typeof value === 'number' && (value < Number(minimum) || value > Number(maximum)))
    throw new StartupError(`${type.name}.${String(name)} starts as ${value}, beyond its limits.`);
  return { ...options, default: value };
}

/** The value as JSON has it; undefined for objects, which may differ with each request, and for integers that a double rounds. */
function documentable(value: unknown): unknown {
  if (Array.isArray(value)) return value.some((item) => typeof item === 'object') ? undefined : value.map(documentable);
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : undefined;
  return typeof value === 'object' && value !== null ? undefined : value;
}
