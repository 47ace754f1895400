import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import { ValidateBy, ValidateNested, type ValidatorConstraintInterface } from 'class-validator';
import { INVALID, type Rule } from './rule.js';

/** What every property says of itself. */
export interface Described {
  /** One or two sentences for the document. */
  description: string;
  /** Shown in the document. */
  example?: unknown;
  /** Whether it must be present; true unless said otherwise. */
  required?: boolean;
  /** Whether it may be null; false unless said otherwise. */
  nullable?: boolean;
}

/** What one property of a class accepts. */
export class CheckedProperty {
  constructor(
    readonly name: string,
    readonly isRequired: boolean,
    private readonly isNullable: boolean,
    readonly rule: Rule,
  ) {}

  /** The value for the handler, undefined for a missing one that may be missing, or INVALID. */
  read(sent: unknown): unknown {
    if (sent === undefined) return this.isRequired ? INVALID : undefined;
    return sent === null && this.isNullable ? null : this.rule.read(sent);
  }

  /** Whether the handler may get a value; undefined stands for a missing one. */
  isValid(value: unknown): boolean {
    if (value === undefined) return !this.isRequired;
    return value === null && this.isNullable ? true : this.rule.isValid(value);
  }

  /** Adds the clauses for a refused value; undefined stands for a missing one. `prefix` is the path of its object. */
  addFaults(sent: unknown, prefix: string, faults: string[]): void {
    const path = prefix + this.name;
    if (sent === undefined) {
      faults.push(`${path} is required`);
    } else {
      this.rule.addFaults(sent, path, this.isNullable ? ' or null' : '', faults);
    }
  }
}

/** The property that a rule of class-validator stands for; undefined for a rule of another decorator. */
export function checkedPropertyOf(rule: { context?: unknown }): CheckedProperty | undefined {
  return rule.context instanceof CheckedProperty ? rule.context : undefined;
}

/** The name of the rule in class-validator. */
export const CHECKED_PROPERTY = 'checkedProperty';

/** Marks the rule of class-validator that looks into the values of a property of ours. */
const LOOKS_INSIDE = Symbol('looks inside');

/** Whether a rule of class-validator only looks into the values of a property of ours. */
export function looksInside(rule: { context?: unknown }): boolean {
  return rule.context === LOOKS_INSIDE;
}

/**
 * The decorator of a rule. It is of class-validator and class-transformer too: where decorators of theirs stand in the
 * class, or in one that is nested in it, they read and check the property.
 */
export function checkedProperty(
  rule: Rule,
  { required = true, nullable = false, ...described }: Described & ApiPropertyOptions,
): PropertyDecorator {
  return (prototype, key) => {
    const property = new CheckedProperty(String(key), required, nullable, rule);
    const validator: ValidatorConstraintInterface = {
      validate: (value) => property.isValid(value),
      defaultMessage: () => 'is refused',
    };
    applyDecorators(
      ApiProperty({ ...rule.schema, ...described, required, ...(nullable && { nullable }) } as ApiPropertyOptions),
      ...conversionOf(property),
      ValidateBy({ name: CHECKED_PROPERTY, validator }, { context: property }),
    )(prototype, key);
  };
}

function conversionOf(property: CheckedProperty): PropertyDecorator[] {
  const { nestedClass } = property.rule;
  if (nestedClass) return [Type(nestedClass), ValidateNested({ context: LOOKS_INSIDE })];
  const convert = (value: unknown): unknown => {
    const read = property.read(value);
    return read === INVALID ? value : read;
  };
  return [Transform(({ value }: { value: unknown }) => convert(value))];
}
