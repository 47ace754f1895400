import type { Type } from '@nestjs/common';
import type { ApiPropertyOptions } from '@nestjs/swagger';

/** Stands for a value that a rule does not accept. */
export const INVALID = Symbol('INVALID');

/** Most faults of a body that one message lists. Nested arrays can have a fault for each few bytes of the body. */
export const MAX_FAULTS = 100;

/** The keywords of a schema, as `@ApiProperty` takes them. */
export type SchemaKeywords = Exclude<ApiPropertyOptions, boolean> & Record<string, unknown>;

/** What a value may be: how it is read, what the client is told of another one, and its schema in the document. */
export interface Rule {
  readonly schema: SchemaKeywords;
  /** The class of the value, or of its items; undefined for scalars and arrays of scalars. */
  readonly nestedClass?: () => Type;
  readonly isArray?: boolean;
  /** Whether a JSON number must not have more digits than a double keeps. */
  readonly needsAllDigits?: boolean;

  /** Makes the value that the handler gets of what was sent, or of what it has made already; else INVALID. */
  read(sent: unknown): unknown;

  /** Whether the handler may get a value, which `read` or a decorator of the module has made. */
  isValid(value: unknown): boolean;

  /**
   * Adds the clauses for a refused value, up to MAX_FAULTS.
   *
   * @param orNull stands behind what the value must be: ' or null' where null is accepted
   */
  addFaults(sent: unknown, path: string, orNull: string, faults: string[]): void;
}

interface Scalar {
  /** Completes the clause "<name> must be …". */
  expected: string;
  /** Ends the clause for a refused string, which clients send when their JSON writer quotes what it should not. */
  forStrings?: string;
  schema: SchemaKeywords;
  /** Whether a converted value is valid. */
  isValid: (value: unknown) => boolean;
  /** Makes the value that the handler gets; what it cannot convert it returns as it is, and isValid refuses it. */
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
