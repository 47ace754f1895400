import { INT64_MAX, INT64_MIN, isInt64, parseInt64, toInt64 } from '../../json/int64.js';
import { countCharacters, isStorableText } from '../../json/text/text.js';
import { canonicalDecimal, type DecimalLimits, decimalPattern, decimalTextOf, unscaled } from '../formats/decimals.js';
import { type Rule, scalar } from './rule.js';
import { isFullDate, parseDateTime } from '../formats/times.js';

/*
 * Patterns for the document. They do not exclude unpaired surrogates: engines that match UTF-16 code units would then
 * refuse every emoji, which consists of two.
 */
const WITHOUT_NULL = '^[^\\x00]*$';
const NOT_BLANK = '^[^\\x00]*[^\\s\\x00][^\\x00]*$';

/** A double keeps every decimal of at most this many digits exactly. */
const MAX_NUMBER_DIGITS = 15;

const NOT_QUOTED = ', sent as a JSON number, not a string';

export interface TextLimits {
  minLength: number;
  maxLength: number;
  /** Whether white space alone is refused. */
  notBlank?: boolean;
}

/**
 * A string without U+0000 and unpaired surrogates. Its length is limited in characters: Unicode code points, as in JSON
 * Schema.
 */
export function text({ minLength, maxLength, notBlank = false }: TextLimits): Rule {
  return scalar({
    expected:
      `a string of ${minLength} to ${maxLength} characters` +
      `${notBlank ? ', not all of them white space,' : ''} without U+0000 and unpaired surrogates`,
    schema: { type: 'string', minLength, maxLength, pattern: notBlank ? NOT_BLANK : WITHOUT_NULL },
    isValid: (value) =>
      typeof value === 'string' &&
      // A string has at most two UTF-16 units a character, so longer ones need no counting.
      value.length <= 2 * maxLength &&
      (value.length <= maxLength || countCharacters(value) <= maxLength) &&
      countCharacters(value) >= minLength &&
      (!notBlank || /\S/u.test(value)) &&
      isStorableText(value),
  });
}

/** A JSON integer in the range of int64; the handler gets an exact bigint. */
export function int64(): Rule {
  return scalar({
    expected: `an integer between ${INT64_MIN} and ${INT64_MAX}`,
    forStrings: NOT_QUOTED,
    schema: { type: 'integer', format: 'int64' },
    convert: (value) => toInt64(value) ?? value,
    isValid: isInt64,
  });
}

/** The decimal text of an int64, in a path or a query; the handler gets an exact bigint. */
export function int64Text(): Rule {
  return scalar({
    expected: `an integer between ${INT64_MIN} and ${INT64_MAX}`,
    schema: { type: 'integer', format: 'int64' },
    convert: (value) => (typeof value === 'string' ? (parseInt64(value) ?? value) : value),
    isValid: isInt64,
  });
}

export interface IntegerLimits {
  /** At least -(2^53 - 1). */
  minimum: number;
  /** At most 2^53 - 1. */
  maximum: number;
}

/** A JSON integer; the handler gets a number. */
export function integer({ minimum, maximum }: IntegerLimits): Rule {
  return scalar({
    expected: `an integer between ${minimum} and ${maximum}`,
    forStrings: NOT_QUOTED,
    schema: { type: 'integer', format: integerFormat(minimum, maximum), minimum, maximum },
    isValid: (value) => Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
  });
}

/** A decimal integer without sign and leading zeros, in a path or a query; the handler gets a number. */
export function integerText({ minimum, maximum }: IntegerLimits): Rule {
  return scalar({
    expected: `an integer between ${minimum} and ${maximum}`,
    schema: { type: 'integer', format: integerFormat(minimum, maximum), minimum, maximum },
    convert: (value) => (typeof value === 'string' && /^(0|[1-9][0-9]{0,14})$/.test(value) ? Number(value) : value),
    isValid: (value) => typeof value === 'number' && value >= minimum && value <= maximum,
  });
}

function integerFormat(minimum: number, maximum: number): 'int32' | 'int64' {
  return maximum < 2 ** 31 && minimum >= -(2 ** 31) ? 'int32' : 'int64';
}

/** true or false. */
export function boolean(): Rule {
  return scalar({
    expected: 'true or false',
    forStrings: ', not a string',
    schema: { type: 'boolean' },
    isValid: (value) => typeof value === 'boolean',
  });
}

/** `true` or `false` in a path or a query; the handler gets a boolean. */
export function booleanText(): Rule {
  return scalar({
    expected: 'true or false',
    schema: { type: 'boolean' },
    convert: (value) => (value === 'true' ? true : value === 'false' ? false : value),
    isValid: (value) => typeof value === 'boolean',
  });
}

export interface EnumValues {
  enum: readonly string[];
  /** Name of the schema that all properties of this enumeration share, and what that schema says of itself. */
  enumName: string;
  enumSchema: { description: string };
}

/** One of a fixed set of strings, compared exactly. */
export function oneOf({ enum: values, enumName, enumSchema }: EnumValues): Rule {
  return scalar({
    expected: `one of ${values.join(', ')}`,
    schema: { enum: [...values], enumName, enumSchema },
    isValid: (value) => typeof value === 'string' && values.includes(value),
  });
}

/**
 * A calendar day: a `full-date` of RFC 3339 such as 2026-02-28, in the years 1 to 9999. The handler gets the text, as
 * columns of type `date` do: a `Date` would be an instant, which is another day in another time zone.
 */
export function date(): Rule {
  return scalar({
    expected: 'a date such as 2026-02-28',
    schema: { type: 'string', format: 'date' },
    isValid: (value) => typeof value === 'string' && isFullDate(value),
  });
}

/**
 * An instant: a `date-time` of RFC 3339 with its offset, in the years 1 to 9999. The handler gets a `Date`, as columns of
 * type `timestamptz` do: instants compare by time, whatever their offsets were, and answers have them in UTC. Digits
 * beyond milliseconds are cut; a leap second becomes the instant that follows it.
 */
export function dateTime(): Rule {
  return scalar({
    expected: 'a date and time with its offset, such as 2026-02-28T09:30:00Z or 2026-02-28T09:30:00+01:00',
    schema: { type: 'string', format: 'date-time' },
    convert: (value) => (typeof value === 'string' ? (parseDateTime(value) ?? value) : value),
    isValid: (value) => value instanceof Date && !Number.isNaN(value.getTime()),
  });
}

/**
 * An exact decimal, sent as a JSON string such as "12.50". The handler gets the text with all digits of its scale, as
 * columns of type `numeric(precision, scale)` return it.
 *
 * @throws Error when the limits contradict each other
 */
export function decimal(limits: DecimalLimits): Rule {
  const { precision, scale, minimum, maximum } = checked(limits, 1_000);
  const pattern = decimalPattern(limits);
  const isWithin = rangeOf(limits);
  const shape = new RegExp(pattern);
  return scalar({
    expected: `a decimal number as a JSON string, ${digitsOf(precision, scale)}${between(minimum, maximum)}`,
    schema: { type: 'string', format: 'decimal', pattern },
    convert: (value) =>
      typeof value === 'string' && value.length <= precision + 2 && shape.test(value)
        ? canonicalDecimal(value, scale)
        : value,
    isValid: (value) =>
      typeof value === 'string' && value.length <= precision + 3 && shape.test(value) && isWithin(value),
  });
}

/**
 * A JSON number of at most `precision` decimal digits. The handler gets a number that is written as the same decimal: a
 * double keeps 15 digits. A number that was sent with more digits is refused, not rounded.
 *
 * @throws Error when the limits contradict each other, or `precision` is more than 15; use `decimal` then
 */
export function number(limits: DecimalLimits): Rule {
  const { precision, scale, minimum, maximum } = checked(limits, MAX_NUMBER_DIGITS);
  const isWithin = rangeOf(limits);
  const shape = new RegExp(decimalPattern(limits));
  return scalar({
    expected: `a number, ${digitsOf(precision, scale)}${between(minimum, maximum)}`,
    forStrings: NOT_QUOTED,
    schema: {
      type: 'number',
      format: 'double',
      multipleOf: Number(`1e-${scale}`),
      minimum: minimum === undefined ? -largest(precision, scale) : Number(minimum),
      maximum: maximum === undefined ? largest(precision, scale) : Number(maximum),
    },
    isValid: (value) => {
      if (typeof value !== 'number' || !Number.isFinite(value)) return false;
      const decimal = decimalTextOf(value);
      return shape.test(decimal) && isWithin(decimal);
    },
    needsAllDigits: true,
  });
}

function checked(limits: DecimalLimits, maxPrecision: number): DecimalLimits {
  const { precision, scale, minimum, maximum } = limits;
  const isPossible =
    Number.isInteger(precision) && precision >= 1 && precision <= maxPrecision && scale >= 0 && scale <= precision;
  if (!isPossible) {
    throw new Error(`A decimal has a precision of 1 to ${maxPrecision} digits, and a scale of 0 to its precision.`);
  }
  const shape = new RegExp(decimalPattern({ precision, scale }));
  for (const limit of [minimum, maximum]) {
    if (limit !== undefined && !shape.test(limit))
      throw new Error(`${limit} is no decimal of this precision and scale.`);
  }
  return limits;
}

function rangeOf({ scale, minimum, maximum }: DecimalLimits): (decimal: string) => boolean {
  const least = minimum === undefined ? undefined : unscaled(minimum, scale);
  const most = maximum === undefined ? undefined : unscaled(maximum, scale);
  return (decimal) => {
    const value = unscaled(decimal, scale);
    return (least === undefined || value >= least) && (most === undefined || value <= most);
  };
}

function largest(precision: number, scale: number): number {
  return Number(`${'9'.repeat(precision)}e-${scale}`);
}

function digitsOf(precision: number, scale: number): string {
  const integers = precision - scale;
  return scale === 0
    ? `an integer of up to ${precision} digits`
    : `with up to ${integers} digits before and ${scale} behind the point`;
}

function between(minimum: string | undefined, maximum: string | undefined): string {
  if (minimum !== undefined && maximum !== undefined) return `, between ${minimum} and ${maximum}`;
  if (minimum !== undefined) return `, at least ${minimum}`;
  return maximum === undefined ? '' : `, at most ${maximum}`;
}

/** A string whose meaning only the handler knows and checks; `maxLength` and `pattern` are for the document alone. */
export function opaque(limits: { maxLength?: number; pattern?: string }): Rule {
  return scalar({
    expected: 'a string',
    schema: { type: 'string', ...limits },
    isValid: (value) => typeof value === 'string',
  });
}
