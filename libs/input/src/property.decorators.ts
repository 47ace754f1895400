import { Param } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import { ApiError, type ErrorDefinition, FailsWith, UNSTORABLE } from '#errors';
import {
  countCharacters,
  hasOwnNumerals,
  INT64_MAX,
  INT64_MIN,
  int64OfNumeral,
  isInt64,
  numeralOf,
  parseInt64,
  toInt64,
} from '#json';
import { checkedProperty, type Described, OF_ITEM, type Rule } from './input-class.js';

/*
 * Decorators for the properties of input classes. Each one is the runtime rule, its error clause and its schema in the
 * document at once. A class may combine them with rules of class-validator, and then goes through it as a whole, as on stock Nest.
 * A missing member keeps the initial value that its class gives it, which the document has as its default.
 */

/*
 * Patterns for the document. They do not exclude unpaired surrogates: engines that match UTF-16 code units would then
 * refuse every emoji. White space is listed as JavaScript's `\s`, which means other characters in other languages, above U+00FF
 * by the characters themselves: neither Go nor PHP compiles `\u` and four digits.
 */
const WITHOUT_NULL = '^[^\\x00]*$';
const WHITE_SPACE = '\\x09-\\x0D\\x20\\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF';
const NOT_BLANK = `^[^\\x00]*[^\\x00${WHITE_SPACE}][^\\x00]*$`;

const NOT_QUOTED = ', sent as a JSON number, not a string';

const INT64: Rule = {
  expected: `an integer between ${INT64_MIN} and ${INT64_MAX}`,
  schema: { type: 'integer', format: 'int64' },
  refusing: (value) =>
    isInt64(value) ? undefined : typeof value === 'bigint' || Number.isInteger(value) ? 'format' : 'type',
};

/**
 * With `isArray` the property is an array, of which each item must fit the other options. In a query, the parameter may be
 * repeated: `?tag=a&tag=b`.
 */
type OneOrArray =
  | { isArray?: false }
  | {
      isArray: true;
      /** Most items. */
      maxItems: number;
      /** Fewest items; 0 by default. */
      minItems?: number;
      /** Whether two items must not be equal; false by default. */
      uniqueItems?: boolean;
    };

interface TextRules {
  minLength?: number;
  maxLength?: number;
  /** Whether white space alone is refused. */
  notBlank?: boolean;
  /** A regular expression of JavaScript with the flag `u`, for rule and document; anchored by `^` and `$` where it must fit all. */
  pattern?: string;
}

const DATE = '[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])';
const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';

type TextFormat = 'decimal' | 'date' | 'date-time' | 'email' | 'uri' | 'uuid';

/** Texts of a format: the clause, the longest one, its pattern, and what no pattern says. */
const FORMATS: Record<TextFormat, readonly [string, number, string, ((text: string) => boolean)?]> = {
  decimal: ['a decimal such as "12.50"', 100, '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$'],
  date: ['a date such as 2026-02-28', 10, `^${DATE}$`, isDay],
  // Six digits, as PostgreSQL stores them.
  'date-time': [
    'a time with offset such as 2026-02-28T09:30:00Z',
    32,
    `^${DATE}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$`,
    isDay,
  ],
  email: ['an e-mail address', 254, `^[\\w.!#$%&'*+/=?^\`{|}~-]+@${LABEL}(\\.${LABEL})+$`],
  uri: ['an http or https URL', 2_048, '^https?://[!-~]+$', (text: string) => URL.canParse(text)],
  uuid: ['a UUID', 36, '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'],
};

/** Either the lengths or a format, which has lengths of its own. */
type TextLimits = TextRules & ({ minLength: number; maxLength: number; format?: undefined } | { format: TextFormat });

interface IntegerLimits {
  /** At least -(2^53 - 1). */
  minimum: number;
  /** At most 2^53 - 1. */
  maximum: number;
}

interface EnumValues {
  enum: readonly string[];
  /** Name of the schema that all properties of this enumeration share, except arrays, and what that schema says of itself. */
  enumName: string;
  enumSchema: { description: string; example?: string };
}

/**
 * A string without U+0000 and unpaired surrogates. Its length counts Unicode code points, as in JSON Schema. The handler gets it as
 * it was sent, with a `format`, too: a decimal may be rounded by its column.
 *
 * @example `@TextProperty({ description: 'Its colour.', minLength: 1, maxLength: 40, example: 'red' }) colour: string;`
 * @example `@TextProperty({ description: 'Its price.', format: 'decimal', pattern: '^[0-9]{1,8}(\\.[0-9]{1,2})?$' }) price: string;`
 */
export function TextProperty(options: Described & TextLimits & OneOrArray): PropertyDecorator {
  const { minLength, maxLength, notBlank = false, pattern, format, ...described } = options;
  const [what, longest, form, check] = format === undefined ? [] : FORMATS[format];
  const limits = { ...(minLength !== undefined && { minLength }), maxLength: maxLength ?? longest };
  const own = textRule({ ...limits, notBlank, pattern }, what);
  const whole = form === undefined ? undefined : new RegExp(form, 'u');
  const documented = pattern ?? form ?? (notBlank ? NOT_BLANK : WITHOUT_NULL);
  return valueOrArray(described, {
    expected: own.expected,
    schema: { type: 'string', ...(format && { format }), ...limits, pattern: documented },
    refusing: (value) =>
      own.refusing(value) ??
      (whole?.test(value as string) === false || check?.(value as string) === false ? 'format' : undefined),
  });
}

/**
 * The rule of a text without its schema.
 *
 * @param what a format, in place of a string
 */
function textRule(
  { minLength, maxLength = Infinity, notBlank, pattern }: TextRules,
  what?: string,
): Omit<Rule, 'schema'> {
  const regExp = pattern === undefined ? undefined : new RegExp(pattern, 'u');
  const most =
    maxLength === Infinity ? '' : minLength === undefined ? `at most ${maxLength}` : `${minLength} to ${maxLength}`;
  return {
    expected:
      (what === undefined
        ? `a string${most && ` of ${most} characters`}${notBlank ? ', not blank,' : ''} without NUL or unpaired surrogates`
        : `${what} of at most ${maxLength} characters`) + (pattern === undefined ? '' : ` that matches ${pattern}`),
    refusing: (value) => {
      if (typeof value !== 'string') return 'type';
      // A string has at most two UTF-16 units a character, so longer ones need no counting.
      if (value.length > 2 * maxLength || (value.length > maxLength && countCharacters(value) > maxLength))
        return 'maxLength';
      if (minLength !== undefined && countCharacters(value) < minLength) return 'minLength';
      const isRefused = (notBlank && !/\S/u.test(value)) || UNSTORABLE.test(value) || regExp?.test(value) === false;
      return isRefused ? 'pattern' : undefined;
    },
  };
}

/** Whether the text begins with a day of the calendar; PostgreSQL has no year 0. */
function isDay(text: string): boolean {
  const day = text.slice(0, 10);
  const time = new Date(`${day}T00:00:00Z`);
  return !day.startsWith('0000') && !Number.isNaN(time.getTime()) && time.toISOString().startsWith(day);
}

/**
 * A JSON integer in the range of int64; the handler gets an exact bigint.
 *
 * @example `@Int64Property({ description: 'Its identifier.', example: 1 }) id: bigint;`
 */
export function Int64Property(options: Described & OneOrArray): PropertyDecorator {
  return valueOrArray(options, { ...INT64, forStrings: NOT_QUOTED, convert: int64Of });
}

/**
 * A JSON integer within limits of at most 2^53 - 1; the handler gets a number.
 *
 * @example `@IntegerProperty({ description: 'How many.', minimum: 1, maximum: 99, example: 2 }) quantity: number;`
 */
export function IntegerProperty(options: Described & IntegerLimits & OneOrArray): PropertyDecorator {
  const { minimum, maximum, ...described } = options;
  const convert: Rule['convert'] = (value, holder, name) => {
    const exact = int64Of(value, holder, name);
    return typeof exact === 'bigint' ? Number(exact) : exact;
  };
  return valueOrArray(described, { ...integerWithin(minimum, maximum), forStrings: NOT_QUOTED, convert });
}

/**
 * true or false.
 *
 * @example `@BooleanProperty({ description: 'Whether it cannot wait.', example: false }) urgent: boolean;`
 */
export function BooleanProperty(options: Described): PropertyDecorator {
  return checkedProperty(options, {
    expected: 'true or false',
    forStrings: ', not a string',
    schema: { type: 'boolean' },
    refusing: (value) => (typeof value === 'boolean' ? undefined : 'type'),
  });
}

/**
 * One of a fixed set of strings, compared exactly.
 *
 * @example `@EnumProperty({ description: 'Its size.', enum: SIZES, enumName: 'Size', enumSchema }) size: string;`
 */
export function EnumProperty(options: Described & EnumValues & OneOrArray): PropertyDecorator {
  const { enum: values, enumName, enumSchema, ...described } = options;
  return valueOrArray(described, {
    expected: `one of ${values.join(', ')}`,
    // @nestjs/swagger drops the limits of an array of a named enumeration in a query.
    schema: options.isArray
      ? { type: 'string', enum: [...values], ...enumSchema }
      : { enum: [...values], enumName, enumSchema },
    refusing: (value) => (typeof value === 'string' && values.includes(value) ? undefined : 'enum'),
  });
}

/**
 * In a path, a query or a form: a decimal int64 without plus sign and leading zeros; the handler gets an exact bigint.
 *
 * @example `@Int64Parameter({ description: 'Only orders of this customer.', required: false }) customerId?: bigint;`
 */
export function Int64Parameter(described: Described & OneOrArray): PropertyDecorator {
  const convert = (value: unknown): unknown => (typeof value === 'string' ? (parseInt64(value) ?? value) : value);
  return valueOrArray(described, { ...INT64, convert });
}

/**
 * In a path, a query or a form: a decimal integer without sign and leading zeros; the handler gets a number.
 *
 * @example `@IntegerParameter({ description: 'Age in days.', minimum: 1, maximum: 90 }) days = 7;`
 */
export function IntegerParameter(options: Described & IntegerLimits & OneOrArray): PropertyDecorator {
  const { minimum, maximum, ...described } = options;
  const convert = (value: unknown): unknown =>
    typeof value === 'string' && /^(0|[1-9][0-9]{0,14})$/.test(value) ? Number(value) : value;
  return valueOrArray(described, { ...integerWithin(minimum, maximum), convert });
}

/**
 * A query parameter that the handler looks at. Text that PostgreSQL cannot store is refused. With `anyText` the handler checks
 * everything, such as a cursor, and `maxLength` and `pattern` are for the document.
 *
 * @example `@OpaqueParameter({ description: 'Only visits for this reason.', required: false }) reason?: string;`
 */
export function OpaqueParameter(
  options: Described & { maxLength?: number; pattern?: string; anyText?: boolean },
): PropertyDecorator {
  const { anyText = false, ...described } = options;
  const rule = { ...textRule(described), schema: { type: 'string' } };
  const anyRule: Rule = { ...rule, refusing: (value) => (typeof value === 'string' ? undefined : 'type') };
  return checkedProperty(described, anyText ? anyRule : rule);
}

/**
 * A parameter of a handler: an id in the path, a decimal int64 without plus sign and leading zeros. The handler gets an
 * exact bigint. No resource has another id, so any other text gets the error of an unknown id, which the document lists.
 *
 * @example getOrder(@PathId('orderId', ORDER_NOT_FOUND, { description: 'Its identifier.', example: 1 }) id: bigint)
 * @param name its name in the route
 * @param notFound the error of an unknown id
 */
export function PathId(
  name: string,
  notFound: ErrorDefinition,
  { description, example }: Pick<Described, 'description' | 'example'>,
): ParameterDecorator {
  const transform = (text: string): bigint => {
    const id = parseInt64(text);
    if (id === undefined) throw new ApiError(notFound);
    return id;
  };
  return (prototype, key, index) => {
    Param(name, { transform })(prototype, key, index);
    const handler = Object.getOwnPropertyDescriptor(prototype, key as string) as PropertyDescriptor;
    const schema = { type: 'integer', format: 'int64', example };
    ApiParam({ name, description, schema })(prototype, key as string, handler);
    FailsWith(notFound)(prototype, key as string, handler);
  };
}

/** The rule of one value, or of an array of such values. */
function valueOrArray(options: Described & OneOrArray, item: Rule): PropertyDecorator {
  if (!options.isArray) return checkedProperty(options, item);
  const { minItems = 0, maxItems, uniqueItems = false, ...described } = options;
  const limits = { ...(minItems > 0 && { minItems }), maxItems, ...(uniqueItems && { uniqueItems }) };
  // The schema says that it is one.
  const property = { ...described, isArray: false };
  return checkedProperty(property, {
    expected: `an array of ${minItems} to ${maxItems} items${uniqueItems ? ', all of them different' : ''}`,
    schema: { type: 'array', items: item.schema, ...limits },
    items: item,
    refusing: (value) => {
      if (!Array.isArray(value)) return 'type';
      if (value.length > maxItems) return 'maxItems';
      if (value.length < minItems) return 'minItems';
      if (value.some((each) => item.refusing(each) !== undefined)) return OF_ITEM;
      return uniqueItems && new Set(value).size < value.length ? 'uniqueItems' : undefined;
    },
    convert: (value, holder, name) => {
      const { convert } = item;
      // No item of a longer array is looked at.
      if (!Array.isArray(value) || value.length > maxItems || convert === undefined) return value;
      const origin = originOf(value, (holder as Record<string | number, unknown>)[name]);
      return value.map((each: unknown, index) => convert(each, origin, index));
    },
  });
}

/** The exact value of a member that is an integer; NaN for a number that is none, although its double is. */
function int64Of(value: unknown, holder: object, key: string | number): unknown {
  // No source text if it was not sent so: a decorator of the module may have changed it.
  const isSent = typeof value === 'number' && (holder as Record<string | number, unknown>)[key] === value;
  const numeral = isSent ? numeralOf(holder, key) : undefined;
  if (numeral === undefined) return toInt64(value) ?? value;
  return int64OfNumeral(numeral) ?? (Number.isSafeInteger(value) ? NaN : value);
}

/** The array with the source texts of a copy by class-transformer; none if a module has changed either: two ids may have one double. */
function originOf(array: readonly unknown[], sent: unknown): readonly unknown[] {
  if (!Array.isArray(sent) || !hasOwnNumerals(sent)) return [];
  return sent.length === array.length && sent.every((item, index) => item === array[index]) ? sent : [];
}

function integerWithin(minimum: number, maximum: number): Rule {
  const isInt32 = maximum < 2 ** 31 && minimum >= -(2 ** 31);
  return {
    expected: `an integer between ${minimum} and ${maximum}`,
    schema: { type: 'integer', format: isInt32 ? 'int32' : 'int64', minimum, maximum },
    refusing: (value) => {
      if (!Number.isInteger(value)) return 'type';
      if ((value as number) < minimum) return 'minimum';
      return (value as number) > maximum ? 'maximum' : undefined;
    },
  };
}
