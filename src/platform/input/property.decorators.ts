import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ValidateBy, type ValidatorConstraintInterface } from 'class-validator';
import { INT64_MAX, INT64_MIN, isInt64, toInt64 } from '../json/int64.js';
import { countCharacters, isStorableText } from '../json/reader/text.js';

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
export class CheckedProperty {
  constructor(
    readonly name: string,
    readonly isRequired: boolean,
    private readonly rule: Rule,
  ) {}

  /** The value for the handler, or INVALID. */
  read(sent: unknown): unknown {
    const value = this.rule.convert ? this.rule.convert(sent) : sent;
    return this.rule.isValid(value) ? value : INVALID;
  }

  /** The message clause for a refused value. `sent` is undefined when the member is missing. */
  fault(sent: unknown): string {
    if (sent === undefined) return `${this.name} is required`;
    const { expected, forStrings = '' } = this.rule;
    return `${this.name} must be ${expected}${typeof sent === 'string' ? forStrings : ''}`;
  }
}

/** Stands for a value that a property does not accept. */
export const INVALID = Symbol('INVALID');

/** The property that a rule of class-validator stands for; undefined for a rule of another decorator. */
export function checkedPropertyOf(rule: { context?: unknown }): CheckedProperty | undefined {
  return rule.context instanceof CheckedProperty ? rule.context : undefined;
}

function checkedProperty(
  rule: Rule,
  { required = true, ...schema }: Described & ApiPropertyOptions,
): PropertyDecorator {
  return (prototype, key) => {
    const property = new CheckedProperty(String(key), required, rule);
    const validator: ValidatorConstraintInterface = {
      validate: (value) => (value === undefined ? !required : rule.isValid(value)),
      defaultMessage: (validation) => property.fault(validation?.value),
    };
    applyDecorators(
      ApiProperty({ ...schema, required } as ApiPropertyOptions),
      Transform(({ value }: { value: unknown }) => (rule.convert ? rule.convert(value) : value)),
      ValidateBy({ name: 'checkedProperty', validator }, { context: property }),
    )(prototype, key);
  };
}

/*
 * Patterns of the document. They say nothing of unpaired surrogates: engines that match UTF-16 units would take each emoji
 * for two of them.
 */
const WITHOUT_NULL = '^[^\\x00]*$';
const NOT_BLANK = '^[^\\x00]*[^\\s\\x00][^\\x00]*$';

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
    { type: 'string', minLength, maxLength, pattern: notBlank ? NOT_BLANK : WITHOUT_NULL, ...described },
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
    { type: 'integer', format: maximum < 2 ** 31 && minimum >= -(2 ** 31) ? 'int32' : 'int64', ...options },
  );
}

/**
 * A query parameter that only the service itself understands, such as a cursor. The handler checks it; `maxLength` and
 * `pattern`, if given, are for the document.
 */
export function OpaqueParameter(described: Described & { maxLength?: number; pattern?: string }): PropertyDecorator {
  return checkedProperty(
    { expected: 'a string', isValid: (value) => typeof value === 'string' },
    { type: 'string', ...described },
  );
}
