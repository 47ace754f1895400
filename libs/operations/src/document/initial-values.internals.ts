import { DECORATORS } from '@nestjs/swagger';
import { StartupError } from '#runtime';

type Class = new () => Readonly<Record<string | symbol, unknown>>;
type Options = Readonly<Record<string, unknown>>;

/**
 * Runs `describe`, in which @nestjs/swagger asks for the metadata of each member. The default of a member that may be missing
 * becomes the initial value that its class gives it, because handlers get that value.
 *
 * @throws StartupError when an initial value is beyond the limits of its member
 */
export function withInitialValues<Document>(describe: () => Document): Document {
  const { getMetadata } = Reflect;
  Reflect.getMetadata = (key: unknown, target: object, ...property: [] | [string | symbol]) => {
    const known = getMetadata(key, target, ...(property as [string])) as Options | undefined;
    const [name] = property;
    if (key !== DECORATORS.API_MODEL_PROPERTIES || name === undefined || known === undefined) return known;
    return withInitialValue(target.constructor as Class, name, known);
  };
  try {
    return describe();
  } finally {
    Reflect.getMetadata = getMetadata;
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
