import { applyDecorators, type Type } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ValidateBy, type ValidatorConstraintInterface } from 'class-validator';
import { INT64_MAX, INT64_MIN, isInt64, toInt64 } from '../json/int64.js';
import { isStorableText } from '../json/json-reader.js';

/*
 * Properties of what clients send: each decorator is the runtime rule, its error clause and its schema in the document
 * at once, so that the three cannot drift apart. They are decorators of class-validator and class-transformer too, whose own
 * decorators work beside them.
 */

interface Described {
  /** One or two sentences for the document. */
  description: string;
  /** Shown in the document. */
  example?: unknown;
  /** Whether it must be present; true unless said otherwise. */
  required?: boolean;
}

interface Rule {
  /** Completes the clause "<property> must be …". */
  expected: string;
  /** Ends the clause for a refused string, which clients send when their JSON writer quotes what it should not. */
  forStrings?: string;
  /** Whether a converted value is valid. */
  isValid: (value: unknown) => boolean;
  /** Makes the value that the handler gets; what it cannot convert it returns as it is, and isValid refuses it. */
  convert?: (value: unknown) => unknown;
}

/** What one property of a class accepts. */
export interface CheckedProperty {
  readonly name: string;
  /** The value for the handler, or INVALID. */
  read(sent: unknown): unknown;
  /** The clause of the message for a value that was refused; undefined when it is missing. */
  fault(sent: unknown): string;
  readonly isRequired: boolean;
}

/** Stands for a value that a property does not accept. */
export const INVALID = Symbol('INVALID');

const PROPERTIES_METADATA = 'petstore:properties';

/** The properties of a class that were declared by the decorators of this file, in their order. */
export function checkedPropertiesOf(type: Type): readonly CheckedProperty[] {
  return (Reflect.getMetadata(PROPERTIES_METADATA, type) as CheckedProperty[] | undefined) ?? [];
}

function checkedProperty(
  rule: Rule,
  { required = true, ...schema }: Described & ApiPropertyOptions,
): PropertyDecorator {
  const { expected, forStrings = '', isValid, convert = (value: unknown): unknown => value } = rule;
  const validator: ValidatorConstraintInterface = {
    validate: (value) => (value === undefined ? !required : isValid(value)),
    defaultMessage: (validation) => fault(validation?.property ?? '', validation?.value),
  };
  const fault = (name: string, value: unknown): string =>
    value === undefined
      ? `${name} is required`
      : `${name} must be ${expected}${typeof value === 'string' ? forStrings : ''}`;

  const register: PropertyDecorator = (prototype, key) => {
    const name = String(key);
    const property: CheckedProperty = {
      name,
      isRequired: required,
      read: (sent) => {
        const value = convert(sent);
        return isValid(value) ? value : INVALID;
      },
      fault: (sent) => fault(name, sent),
    };
    const declared = checkedPropertiesOf(prototype.constructor as Type);
    Reflect.defineMetadata(PROPERTIES_METADATA, [...declared, property], prototype.constructor);
  };
  return applyDecorators(
    register,
    ApiProperty({ ...schema, required } as ApiPropertyOptions),
    Transform(({ value }) => convert(value)),
    ValidateBy({ name: 'checkedProperty', validator }),
  );
}

/** A string of so many characters (Unicode code points, as in JSON Schema), without U+0000 and unpaired surrogates. */
export function TextProperty(
  options: Described & { minLength: number; maxLength: number; notBlank?: boolean },
): PropertyDecorator {
  const { minLength, maxLength, notBlank = false, ...described } = options;
  const isValid = (value: unknown): boolean =>
    typeof value === 'string' &&
    // A string has at most two UTF-16 units a character, so longer ones need no counting.
    value.length <= 2 * maxLength &&
    (value.length <= maxLength || countCharacters(value) <= maxLength) &&
    countCharacters(value) >= minLength &&
    (!notBlank || /\S/u.test(value)) &&
    isStorableText(value);
  const expected =
    `a string of ${minLength} to ${maxLength} characters` +
    `${notBlank ? ', not all of them white space,' : ''} without U+0000 and unpaired surrogates`;
  return checkedProperty(
    { expected, isValid },
    { type: 'string', minLength, maxLength, ...(notBlank ? { pattern: '\\S' } : {}), ...described },
  );
}

/** A JSON integer in the range of int64; the handler gets an exact bigint. */
export function Int64Property(described: Described): PropertyDecorator {
  return checkedProperty(
    {
      expected: `an integer between ${INT64_MIN} and ${INT64_MAX}`,
      forStrings: ', sent as a JSON number, not a string',
      convert: (value) => toInt64(value) ?? value,
      isValid: isInt64,
    },
    { type: 'integer', format: 'int64', ...described },
  );
}

/** One of a fixed set of strings, compared exactly. */
export function EnumProperty(
  options: Described & {
    enum: readonly string[];
    /** Name of the schema that all properties of this enumeration share, and what that schema says of itself. */
    enumName: string;
    enumSchema: { description: string };
    default?: string;
  },
): PropertyDecorator {
  return checkedProperty(
    {
      expected: `one of ${options.enum.join(', ')}`,
      isValid: (value) => typeof value === 'string' && options.enum.includes(value),
    },
    { ...options, enum: [...options.enum] },
  );
}

/** A query parameter that is a decimal integer without sign and leading zeros; the handler gets a number. */
export function IntegerParameter(
  options: Described & { minimum: number; maximum: number; default?: number },
): PropertyDecorator {
  const { minimum, maximum } = options;
  return checkedProperty(
    {
      expected: `an integer between ${minimum} and ${maximum}`,
      convert: (value) => (typeof value === 'string' && /^(0|[1-9][0-9]{0,14})$/.test(value) ? Number(value) : value),
      isValid: (value) => typeof value === 'number' && value >= minimum && value <= maximum,
    },
    { type: 'integer', ...options },
  );
}

/** A query parameter that only the service itself understands, such as a cursor. */
export function OpaqueParameter(described: Described): PropertyDecorator {
  return checkedProperty(
    { expected: 'a string', isValid: (value) => typeof value === 'string' },
    { type: 'string', ...described },
  );
}

function countCharacters(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index++) {
    // The second half of a surrogate pair belongs to the character before it.
    const unit = text.charCodeAt(index);
    const isSecondHalf =
      unit >= 0xdc00 && unit <= 0xdfff && index > 0 && (text.charCodeAt(index - 1) & 0xfc00) === 0xd800;
    if (!isSecondHalf) count++;
  }
  return count;
}
