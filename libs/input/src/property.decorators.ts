import { Param } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import { ApiError, type ErrorDefinition, UNSTORABLE } from '#errors';
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
import { checkedProperty, type Described, type Rule } from './input-class.js';

/*
 * Decorators for the properties of input classes. Each one is the runtime rule, its error clause and its schema in the
 * document at once, so that the three cannot drift apart. For other values use the rules of class-validator and
 * `@ApiProperty()`; a class may combine both.
 *
 * A property may be optional (`required: false`) and nullable (`nullable: true`); only nullable ones accept `null`.
 * `default` is for the document alone: a missing member keeps the initial value that its class gives it.
 */

/*
 * Patterns for the document. They do not exclude unpaired surrogates: engines that match UTF-16 code units would then
 * refuse every emoji, which consists of two.
 */
const WITHOUT_NULL = '^[^\\x00]*$';
const NOT_BLANK = '^[^\\x00]*[^\\s\\x00][^\\x00]*$';

const NOT_QUOTED = ', sent as a JSON number, not a string';

const INT64: Rule = {
  expected: `an integer between ${INT64_MIN} and ${INT64_MAX}`,
  schema: { type: 'integer', format: 'int64' },
  isValid: isInt64,
};

interface TextLimits {
  minLength: number;
  maxLength: number;
  /** Whether white space alone is refused. */
  notBlank?: boolean;
}

interface IntegerLimits {
  /** At least -(2^53 - 1). */
  minimum: number;
  /** At most 2^53 - 1. */
  maximum: number;
}

interface EnumValues {
  enum: readonly string[];
  /** Name of the schema that all properties of this enumeration share, and what that schema says of itself. */
  enumName: string;
  enumSchema: { description: string };
}

/**
 * A string without U+0000 and unpaired surrogates. Its length counts Unicode code points, as in JSON Schema.
 *
 * @example `@TextProperty({ description: 'Its colour.', minLength: 1, maxLength: 40, example: 'red' }) colour: string;`
 */
export function TextProperty(options: Described & TextLimits & { default?: string }): PropertyDecorator {
  const { minLength, maxLength, notBlank = false, ...described } = options;
  return checkedProperty(described, {
    expected:
      `a string of ${minLength} to ${maxLength} characters` +
      `${notBlank ? ', not blank,' : ''} without NUL or unpaired surrogates`,
    schema: { type: 'string', minLength, maxLength, pattern: notBlank ? NOT_BLANK : WITHOUT_NULL },
    isValid: (value) =>
      typeof value === 'string' &&
      // A string has at most two UTF-16 units a character, so longer ones need no counting.
      value.length <= 2 * maxLength &&
      (value.length <= maxLength || countCharacters(value) <= maxLength) &&
      countCharacters(value) >= minLength &&
      (!notBlank || /\S/u.test(value)) &&
      !UNSTORABLE.test(value),
  });
}

/**
 * A JSON integer in the range of int64; the handler gets an exact bigint. With `isArray`, an array of them.
 *
 * @example `@Int64Property({ description: 'Its identifier.', example: 1 }) id: bigint;`
 */
export function Int64Property(
  described: Described & { default?: number; isArray?: boolean; maxItems?: number },
): PropertyDecorator {
  const { isArray = false, maxItems = Infinity } = described;
  if (!isArray) return checkedProperty(described, { ...INT64, forStrings: NOT_QUOTED, convert: int64Of });
  const most = maxItems === Infinity ? '' : `at most ${maxItems} `;
  return checkedProperty(described, {
    expected: `an array of ${most}integers between ${INT64_MIN} and ${INT64_MAX}, sent as JSON numbers`,
    schema: INT64.schema,
    isValid: (value) => Array.isArray(value) && value.length <= maxItems && value.every(isInt64),
    convert: (value, holder, name) => {
      if (!Array.isArray(value)) return value;
      const origin = originOf(value, (holder as Record<string, unknown>)[name]);
      return value.map((item: unknown, index) => int64Of(item, origin, index));
    },
  });
}

/**
 * A JSON integer within limits of at most 2^53 - 1; the handler gets a number.
 *
 * @example `@IntegerProperty({ description: 'How many.', minimum: 1, maximum: 99, example: 2 }) quantity: number;`
 */
export function IntegerProperty(options: Described & IntegerLimits & { default?: number }): PropertyDecorator {
  const { minimum, maximum, ...described } = options;
  const convert = (value: unknown, holder: object, name: string): unknown => {
    const numeral = numeralOfValue(value, holder, name);
    return numeral === undefined ? value : Number(int64OfNumeral(numeral) ?? NaN);
  };
  return checkedProperty(described, { ...integerWithin(minimum, maximum), forStrings: NOT_QUOTED, convert });
}

/**
 * true or false.
 *
 * @example `@BooleanProperty({ description: 'Whether it cannot wait.', example: false }) urgent: boolean;`
 */
export function BooleanProperty(options: Described & { default?: boolean }): PropertyDecorator {
  return checkedProperty(options, {
    expected: 'true or false',
    forStrings: ', not a string',
    schema: { type: 'boolean' },
    isValid: (value) => typeof value === 'boolean',
  });
}

/**
 * One of a fixed set of strings, compared exactly.
 *
 * @example `@EnumProperty({ description: 'Its size.', enum: SIZES, enumName: 'Size', enumSchema }) size: string;`
 */
export function EnumProperty(options: Described & EnumValues & { default?: string }): PropertyDecorator {
  const { enum: values, ...described } = options;
  return checkedProperty(described, {
    expected: `one of ${values.join(', ')}`,
    schema: { enum: [...values] },
    isValid: (value) => typeof value === 'string' && values.includes(value),
  });
}

/**
 * In a path, a query or a form: a decimal int64 without plus sign and leading zeros; the handler gets an exact bigint.
 *
 * @example `@Int64Parameter({ description: 'Only orders of this customer.', required: false }) customerId?: bigint;`
 */
export function Int64Parameter(described: Described): PropertyDecorator {
  const convert = (value: unknown): unknown => (typeof value === 'string' ? (parseInt64(value) ?? value) : value);
  return checkedProperty(described, { ...INT64, convert });
}

/**
 * In a path, a query or a form: a decimal integer without sign and leading zeros; the handler gets a number.
 *
 * @example `@IntegerParameter({ description: 'Age in days.', minimum: 1, maximum: 90, default: 7 }) days = 7;`
 */
export function IntegerParameter(options: Described & IntegerLimits & { default?: number }): PropertyDecorator {
  const { minimum, maximum, ...described } = options;
  const convert = (value: unknown): unknown =>
    typeof value === 'string' && /^(0|[1-9][0-9]{0,14})$/.test(value) ? Number(value) : value;
  return checkedProperty(described, { ...integerWithin(minimum, maximum), convert });
}

/**
 * A query parameter that the handler checks, such as a cursor. `maxLength` and `pattern` are for the document. Text that
 * PostgreSQL cannot store is refused, unless the handler takes `anyText`.
 *
 * @example `@OpaqueParameter({ description: 'Only visits for this reason.', required: false }) reason?: string;`
 */
export function OpaqueParameter(
  options: Described & { maxLength?: number; pattern?: string; anyText?: boolean },
): PropertyDecorator {
  const { anyText = false, ...described } = options;
  return checkedProperty(described, {
    expected: 'a string without NUL or unpaired surrogates',
    schema: { type: 'string' },
    isValid: (value) => typeof value === 'string' && (anyText || !UNSTORABLE.test(value)),
  });
}

/**
 * A parameter of a handler: an id in the path, a decimal int64 without plus sign and leading zeros. The handler gets an
 * exact bigint. No resource has another id, so any other text gets the error of an unknown id.
 *
 * @example getOrder(@PathId('orderId', ORDER_NOT_FOUND, { description: 'Its identifier.', example: 1 }) id: bigint)
 * @param name its name in the route
 * @param notFound the error of an unknown id; name it in `@FailsWith` too
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
    ApiParam({ name, description, schema: { type: 'integer', format: 'int64', example } })(
      prototype,
      key as string,
      handler,
    );
  };
}

/** The exact value of a member that is an integer; NaN for a number that is none, although its double is. */
function int64Of(value: unknown, holder: object, key: string | number): unknown {
  const numeral = numeralOfValue(value, holder, key);
  return numeral === undefined ? (toInt64(value) ?? value) : (int64OfNumeral(numeral) ?? NaN);
}

/**
 * The array that has the source texts of another one's items: the one that was sent, because class-transformer makes a copy. Has
 * none if code of a module has changed either of them: two ids may have the same double.
 */
function originOf(array: readonly unknown[], sent: unknown): readonly unknown[] {
  if (!Array.isArray(sent) || !hasOwnNumerals(sent)) return [];
  return sent.length === array.length && sent.every((item, index) => item === array[index]) ? sent : [];
}

/** The source text of a number; undefined if it was not sent so: a decorator of the module may have changed it. */
function numeralOfValue(value: unknown, holder: object, key: string | number): string | undefined {
  if (typeof value !== 'number' || (holder as Record<string | number, unknown>)[key] !== value) return undefined;
  return numeralOf(holder, key);
}

function integerWithin(minimum: number, maximum: number): Rule {
  const isInt32 = maximum < 2 ** 31 && minimum >= -(2 ** 31);
  return {
    expected: `an integer between ${minimum} and ${maximum}`,
    schema: { type: 'integer', format: isInt32 ? 'int32' : 'int64', minimum, maximum },
    isValid: (value) => Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
  };
}
