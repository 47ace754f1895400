import { applyDecorators, type Type } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform, type TransformFnParams } from 'class-transformer';
import { ValidateBy } from 'class-validator';
import { DECLARED, rulesOf } from '#json';
import { classesOf, hasTransformersBeside, sentNameOf } from './class-transformers.internals.js';

/** In place of an object whose members are known to be converted. */
const CONVERTED = Object.freeze({});

/** Returned instead of a value that a rule refuses. */
export const INVALID = Symbol('INVALID');

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

/** A rule for a value: how it is read, the error clause for a refused value, and its schema in the document. */
export interface Rule {
  /** Completes the clause "<name> must be …". */
  readonly expected: string;
  /** For a rule that refuses every string; is appended to the clause for one: JSON writers may quote such values. */
  readonly forStrings?: string;
  /** The keywords of a schema, as `@ApiProperty` takes them. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** Whether a converted value is valid. */
  readonly isValid: (value: unknown) => boolean;
  /**
   * Converts what was sent to the value for the handler. Returns what `isValid` refuses if it cannot, and converted values
   * unchanged. The value is the member `name` of `holder`, unless a decorator of the module has changed it.
   */
  readonly convert?: (value: unknown, holder: object, name: string) => unknown;
}

/** One property of an input class, with its rule. */
export class CheckedProperty {
  constructor(
    readonly name: string,
    private readonly isRequired: boolean,
    private readonly isNullable: boolean,
    private readonly rule: Rule,
  ) {}

  /** @param holder the object that has the value as its member of the property's name */
  read(sent: unknown, holder: object): unknown {
    if (sent === undefined) return this.isRequired ? INVALID : undefined;
    if (sent === null && this.isNullable) return null;
    const { convert, isValid } = this.rule;
    const value = convert ? convert(sent, holder, this.name) : sent;
    return isValid(value) ? value : INVALID;
  }

  /** The clause for a refused value; undefined stands for a missing one. */
  faultOf(sent: unknown): string {
    if (sent === undefined) return `${this.name} is required`;
    const { expected, forStrings = '' } = this.rule;
    const orNull = this.isNullable ? ' or null' : '';
    return `${this.name} must be ${expected}${orNull}${typeof sent === 'string' ? forStrings : ''}`;
  }
}

/**
 * Makes the decorator of a rule. It is a rule of class-validator, so that a class may combine it with rules of that library:
 * then class-transformer and class-validator read and check the whole class.
 */
export function checkedProperty(
  { required = true, nullable = false, ...described }: Described & ApiPropertyOptions,
  rule: Rule,
): PropertyDecorator {
  return (prototype, key) => {
    const property = new CheckedProperty(String(key), required, nullable, rule);
    const convert = ({ value, obj }: Pick<TransformFnParams, 'value' | 'obj'>): unknown =>
      rule.convert ? rule.convert(value, obj as object, sentNameOf(prototype.constructor, property.name)) : value;
    const validator = {
      // Conversion leaves converted values unchanged.
      validate: (value: unknown) => property.read(value, CONVERTED) !== INVALID,
      defaultMessage: (refused?: { value: unknown }) => property.faultOf(refused?.value),
    };
    applyDecorators(
      ApiProperty({ ...rule.schema, ...described, required, ...(nullable && { nullable }) } as ApiPropertyOptions),
      Transform(convert),
      ValidateBy({ name: DECLARED, validator }, { context: property }),
    )(prototype, key);
  };
}

/** A class that a handler declares for its input. */
export interface InputClass {
  /** Whether any property has a rule. */
  readonly hasRules: boolean;
  /**
   * The properties in the order of the schema, ancestors' first, if only our decorators describe them. Otherwise
   * class-transformer and class-validator read and check the class.
   */
  readonly properties: readonly CheckedProperty[] | undefined;
}

/** Types that Nest's ValidationPipe does not validate either: they are no classes of an application. */
const BUILT_IN: readonly unknown[] = [String, Boolean, Number, BigInt, Symbol, Array, Object, Buffer, Date];

/** Whether the declared type of a parameter is a class of the application, to be instantiated from the input. */
export function isInputClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && !BUILT_IN.includes(metatype);
}

/** Reflection is slow; its results are cached by class. */
const known = new WeakMap<Type, InputClass>();

/** Describes a class; every call with the same class returns the same object. */
export function inputClassOf(type: Type): InputClass {
  let input = known.get(type);
  if (input === undefined) known.set(type, (input = describe(type)));
  return input;
}

function describe(type: Type): InputClass {
  const rules = rulesOf(type);
  const properties = rules.map(({ context }) => context).filter((each) => each instanceof CheckedProperty);
  const names = new Set(properties.map(({ name }) => name));
  const isOurs = names.size === rules.length && !hasTransformersBeside(type, [...names]);
  return { hasRules: rules.length > 0, properties: rules.length > 0 && isOurs ? properties : undefined };
}

/**
 * The members of a class, and of the classes of its members, whose `@ValidateNested()` stands without `@Type()`: as no class says
 * which members their objects have, all of them would be dropped. Each one such as `NewOrder.lines`.
 */
export function untypedMembersOf(type: Type, seen = new Set<Type>()): string[] {
  if (seen.has(type)) return [];
  seen.add(type);
  const rules = rulesOf(type);
  const classes = new Map(rules.map(({ propertyName }) => [propertyName, classesOf(type, propertyName)]));
  const untyped = rules.filter((rule) => {
    const known = classes.get(rule.propertyName);
    return rule.type === 'nestedValidation' && (known === undefined || known.some((each) => !isInputClass(each)));
  });
  return [
    ...new Set(untyped.map(({ propertyName }) => `${type.name}.${propertyName}`)),
    ...[...classes.values()].flatMap((known = []) =>
      known.filter(isInputClass).flatMap((each) => untypedMembersOf(each, seen)),
    ),
  ];
}
