import type { Type } from '@nestjs/common';
import { checkedProperty, type Described } from './properties/checked-property.js';
import type { DecimalLimits } from './formats/decimals.js';
import type { Rule } from './properties/rule.js';
import { array, object } from './properties/structures.js';
import * as values from './properties/values.js';

/*
 * Decorators for the properties of input classes. Each one is the runtime rule, its error clause and its schema in the
 * document at once, so that the three cannot drift apart. Decorators of class-validator and class-transformer may be
 * combined with them.
 *
 * A property may be optional (`required: false`) and nullable (`nullable: true`); only nullable ones accept `null`.
 * `default` is for the document alone: a missing member keeps the initial value that its class gives it.
 */

/**
 * A string without U+0000 and unpaired surrogates. Its length is limited in characters: Unicode code points, as in JSON
 * Schema.
 */
export function TextProperty(options: Described & values.TextLimits & { default?: string }): PropertyDecorator {
  const { minLength, maxLength, notBlank = false, ...described } = options;
  return checkedProperty(values.text({ minLength, maxLength, notBlank }), described);
}

/** A JSON integer in the range of int64; the handler gets an exact bigint. */
export function Int64Property(described: Described & { default?: number }): PropertyDecorator {
  return checkedProperty(values.int64(), described);
}

/** A JSON integer within limits of at most 2^53 - 1; the handler gets a number. */
export function IntegerProperty(options: Described & values.IntegerLimits & { default?: number }): PropertyDecorator {
  const { minimum, maximum, ...described } = options;
  return checkedProperty(values.integer({ minimum, maximum }), described);
}

/**
 * An exact decimal such as an amount of money, sent as a JSON string: `"12.50"`. The handler gets the text with all digits
 * of its scale, as columns of type `numeric` return it.
 *
 * @example DecimalProperty({ description: 'The price in euros.', precision: 10, scale: 2, minimum: '0' })
 */
export function DecimalProperty(options: Described & DecimalLimits & { default?: string }): PropertyDecorator {
  const { precision, scale, minimum, maximum, ...described } = options;
  return checkedProperty(values.decimal(limitsOf(precision, scale, minimum, maximum)), described);
}

/**
 * A JSON number of at most 15 decimal digits; the handler gets a number, which keeps them all. A number with more digits
 * is refused, not rounded. For amounts that you add up, use {@link DecimalProperty}.
 */
export function NumberProperty(options: Described & DecimalLimits & { default?: number }): PropertyDecorator {
  const { precision, scale, minimum, maximum, ...described } = options;
  return checkedProperty(values.number(limitsOf(precision, scale, minimum, maximum)), described);
}

/** true or false. */
export function BooleanProperty(options: Described & { default?: boolean }): PropertyDecorator {
  return checkedProperty(values.boolean(), options);
}

/** One of a fixed set of strings, compared exactly. */
export function EnumProperty(options: Described & values.EnumValues & { default?: string }): PropertyDecorator {
  return checkedProperty(values.oneOf(options), { ...options, enum: [...options.enum] });
}

/**
 * A calendar day (`full-date` of RFC 3339), such as 2026-02-28, in the years 1 to 9999. The handler gets the text, as
 * columns of type `date` do: a `Date` would be an instant, which is another day in another time zone.
 */
export function DateProperty(described: Described & { default?: string }): PropertyDecorator {
  return checkedProperty(values.date(), described);
}

/**
 * An instant (`date-time` of RFC 3339) with its offset, such as 2026-02-28T09:30:00+01:00. The handler gets a `Date`, as
 * columns of type `timestamptz` do: instants compare by time, whatever their offsets were, and answers have them in UTC.
 * Digits beyond milliseconds are cut, and a leap second becomes the instant that follows it.
 */
export function DateTimeProperty(described: Described & { default?: string }): PropertyDecorator {
  return checkedProperty(values.dateTime(), described);
}

/**
 * An object that is read and checked as a class. `type` is a function, so that classes may name each other. Members that the
 * class does not declare are dropped.
 *
 * @example ObjectProperty(() => Address, { description: 'Where it lives.' })
 */
export function ObjectProperty(type: () => Type, described: Described): PropertyDecorator {
  return checkedProperty(object(type), described);
}

/**
 * A JSON array of `minItems` to `maxItems` items. `items` is the rule of each: `object(() => Item)`
 * (properties/structures.ts), or `text({…})`, `int64()` and the others of properties/values.ts. In a query the parameter
 * is given once for each item.
 *
 * @example ArrayProperty({ description: 'What is ordered.', items: object(() => Item), minItems: 1, maxItems: 20 })
 */
export function ArrayProperty(
  options: Described & { items: Rule; minItems: number; maxItems: number; default?: readonly unknown[] },
): PropertyDecorator {
  const { items, minItems, maxItems, ...described } = options;
  return checkedProperty(array(items, minItems, maxItems), described);
}

/**
 * In a path or a query: a decimal integer in the range of int64, without plus sign and leading zeros; the handler gets an
 * exact bigint.
 */
export function Int64Parameter(described: Described): PropertyDecorator {
  return checkedProperty(values.int64Text(), described);
}

/** In a path or a query: a decimal integer without sign and leading zeros; the handler gets a number. */
export function IntegerParameter(options: Described & values.IntegerLimits & { default?: number }): PropertyDecorator {
  const { minimum, maximum, ...described } = options;
  return checkedProperty(values.integerText({ minimum, maximum }), described);
}

/** In a path or a query: `true` or `false`; the handler gets a boolean. */
export function BooleanParameter(options: Described & { default?: boolean }): PropertyDecorator {
  return checkedProperty(values.booleanText(), options);
}

/**
 * A query parameter that only the service itself understands, such as a cursor. The handler checks it; `maxLength` and
 * `pattern`, if given, are for the document.
 */
export function OpaqueParameter(options: Described & { maxLength?: number; pattern?: string }): PropertyDecorator {
  return checkedProperty(values.opaque({}), options);
}

/** Makes the limits; leaves undefined members out. */
function limitsOf(precision: number, scale: number, minimum?: string, maximum?: string): DecimalLimits {
  return { precision, scale, ...(minimum !== undefined && { minimum }), ...(maximum !== undefined && { maximum }) };
}
