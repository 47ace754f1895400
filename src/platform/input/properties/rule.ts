import type { Type } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';

/** Returned instead of a value that a rule refuses. */
export const INVALID = Symbol('INVALID');

/** Largest number of faults that one message lists. Nested arrays can have a fault for every few bytes of a body. */
export const MAX_FAULTS = 100;

/** The keywords of a schema, as `@ApiProperty` takes them. */
export type SchemaKeywords = Exclude<ApiPropertyOptions, boolean> & Record<string, unknown>;

/** A rule for a value: how it is read, the error clause for a refused value, and its schema in the document. */
export interface Rule {
  readonly schema: SchemaKeywords;
  /** The class of the value, or of its items; undefined for scalars and arrays of scalars. */
  readonly nestedClass?: () => Type;
  readonly isArray?: boolean;
  /** Whether a JSON number must not have more digits than a double keeps. */
  readonly needsAllDigits?: boolean;

  /** Converts what was sent to the value for the handler; INVALID if it is refused. Converted values stay unchanged. */
  read(sent: unknown): unknown;

  /** Whether a converted value is valid, be it converted by `read` or by a decorator of the module. */
  isValid(value: unknown): boolean;

  /**
   * Adds the clauses for a refused value, up to MAX_FAULTS.
   *
   * @param orNull is appended to the expected value: ' or null' if null is accepted, else ''
   */
  addFaults(sent: unknown, path: string, orNull: string, faults: string[]): void;
}

interface Scalar {
  /** Completes the clause "<name> must be …". */
  expected: string;
  /** Is appended to the clause for a refused string: JSON writers of clients may quote values that must not be quoted. */
  forStrings?: string;
  schema: SchemaKeywords;
  /** Whether a converted value is valid. */
  isValid: (value: unknown) => boolean;
  /** Converts what was sent to the value for the handler. Returns other values unchanged; `isValid` refuses them. */
  convert?: (value: unknown) => unknown;
  needsAllDigits?: boolean;
}

/** The rule of a value that has no parts. */
export function scalar({ expected, forStrings = '', convert, isValid, ...others }: Scalar): Rule {
  return {
    ...others,
    isValid,
    read(sent) {
      const value = convert ? convert(sent) : sent;
      return isValid(value) ? value : INVALID;
    },
    addFaults(sent, path, orNull, faults) {
      faults.push(`${path} must be ${expected}${orNull}${typeof sent === 'string' ? forStrings : ''}`);
    },
  };
}
