import { applyDecorators } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import { ValidateBy, ValidateNested, type ValidatorConstraintInterface } from 'class-validator';
import { INVALID, type Rule } from './rule.js';

/** Options of every property. */
export interface Described {
  /** One or two sentences for the OpenAPI document. */
  description: string;
  /** An example for the OpenAPI document. */
  example?: unknown;
  /** Whether it must be present; true by default. */
  required?: boolean;
  /** Whether it may be null; false by default. */
  nullable?: boolean;
}

/** One property of an input class, with its rule. */
export class CheckedProperty {
  constructor(
    readonly name: string,
    readonly isRequired: boolean,
    private readonly isNullable: boolean,
    readonly rule: Rule,
  ) {}

  /** The value for the handler; undefined for a missing optional value; INVALID for a refused one. */
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

/** The property whose decorator registered a class-validator rule; undefined for rules of other decorators. */
export function checkedPropertyOf(rule: { context?: unknown }): CheckedProperty | undefined {
  return rule.context instanceof CheckedProperty ? rule.context : undefined;
}

/** The name under which class-validator knows the rule of a checked property. */
export const CHECKED_PROPERTY = 'checkedProperty';

/** Marks the class-validator rule that validates the nested object of a checked property. */
const LOOKS_INSIDE = Symbol('looks inside');

/** Whether a class-validator rule only validates the nested object of a checked property. */
export function looksInside(rule: { context?: unknown }): boolean {
  return rule.context === LOOKS_INSIDE;
}

/**
 * Makes the decorator of a rule. It also registers the property with class-validator and class-transformer: if a class, or
 * one nested in it, has decorators of these libraries, they read and check all of its properties.
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
