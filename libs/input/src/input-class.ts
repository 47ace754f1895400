import { applyDecorators, type Type } from '@nestjs/common';
import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform, type TransformFnParams } from 'class-transformer';
import { ValidateBy } from 'class-validator';
import { FIELD_NAMES } from '#edge';
import type { Fault } from '#errors';
import { rulesOf } from './class-rules.internals.js';
import { classesOf, hasTransformersBeside, sentNameOf } from './class-transformers.internals.js';
import { DECLARED } from './declared-members.js';

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
  /** Whether the document marks it as deprecated; false by default. */
  deprecated?: boolean;
}

/** A rule for a value: how it is read, the error clause for a refused value, and its schema in the document. */
export interface Rule {
  /** Completes the clause "<name> must be …". */
  readonly expected: string;
  /** For a rule that refuses every string; is appended to the clause for one: JSON writers may quote such values. */
  readonly forStrings?: string;
  /** The keywords of a schema, as `@ApiProperty` takes them. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** The keyword of JSON Schema that refuses a converted value; undefined for a valid one. */
  readonly refusing: (value: unknown) => string | undefined;
  /**
   * Converts what was sent to the value for the handler. Returns what `refusing` refuses if it cannot, and converted values
   * unchanged. The value is the member `name` of `holder`, unless a decorator of the module has changed it.
   */
  readonly convert?: (value: unknown, holder: object, name: string | number) => unknown;
  /** Of an array: the rule of its items. */
  readonly items?: Rule;
}

/** One property of an input class, with its rule. */
export class CheckedProperty {
  constructor(
    readonly name: string,
    private readonly isRequired: boolean,
    private readonly isNullable: boolean,
    private readonly rule: Rule,
  ) {}

  /** Whether the value is an array. */
  get isArray(): boolean {
    return this.rule.items !== undefined;
  }

  /** @param holder the object that has the value as its member of the property's name */
  read(sent: unknown, holder: object): unknown {
    if (sent === undefined) return this.isRequired ? INVALID : undefined;
    if (sent === null && this.isNullable) return null;
    const { convert, refusing } = this.rule;
    const value = convert ? convert(sent, holder, this.name) : sent;
    return refusing(value) === undefined ? value : INVALID;
  }

  /**
   * The fault of a refused value; undefined stands for a missing one. Names the first item that an array must not have.
   *
   * @param holder as for `read`
   * @param path the name of the object that has the property; empty for the whole input
   */
  faultOf(sent: unknown, holder: object, path: string): Fault {
    const name = path === '' ? this.name : `${path}.${this.name}`;
    if (sent === undefined) return { property: name, rule: 'required', message: `${name} is required` };
    const value = this.rule.convert ? this.rule.convert(sent, holder, this.name) : sent;
    const rule = this.rule.refusing(value) as string;
    const { items } = this.rule;
    if (rule !== OF_ITEM || items === undefined) return refused(name, rule, this.rule, sent, this.isNullable);
    const index = (value as unknown[]).findIndex((item) => items.refusing(item) !== undefined);
    const item = (value as unknown[])[index];
    return refused(`${name}.${index}`, items.refusing(item) as string, items, item, false);
  }
}

/** Returned by the rule of an array in place of a keyword: the rule of its items refuses one. */
export const OF_ITEM = 'items';

function refused(
  property: string,
  rule: string,
  { expected, forStrings = '' }: Rule,
  sent: unknown,
  isNullable: boolean,
): Fault {
  const nullOr = isNullable ? 'null or ' : '';
  const message = `${property} must be ${nullOr}${expected}${typeof sent === 'string' ? forStrings : ''}`;
  return { property, rule, message };
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
      defaultMessage: (refused?: { value: unknown }) => property.faultOf(refused?.value, CONVERTED, '').message,
    };
    applyDecorators(
      ApiProperty({ ...rule.schema, ...described, required, ...(nullable && { nullable }) } as ApiPropertyOptions),
      Transform(convert),
      // class-validator copies the members of a context.
      ValidateBy({ name: DECLARED, validator }, { context: { checked: property } }),
    )(prototype, key);
  };
}

/** Types that Nest's ValidationPipe does not validate either: they are no classes of an application. */
const BUILT_IN: readonly unknown[] = [String, Boolean, Number, BigInt, Symbol, Array, Object, Buffer, Date];

/** Whether the declared type of a parameter is a class of the application, to be instantiated from the input. */
export function isInputClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && !BUILT_IN.includes(metatype);
}

/** Reflection is slow; its results are cached by class. */
const known = new WeakMap<Type, ReturnType<typeof describe>>();

/** Describes a class that a handler declares for its input; every call with the same class returns the same object. */
export function inputClassOf(type: Type): ReturnType<typeof describe> {
  let input = known.get(type);
  if (input === undefined) known.set(type, (input = describe(type)));
  return input;
}

function describe(type: Type) {
  const rules = rulesOf(type);
  const properties = rules
    .map(({ context }) => (context as { checked?: unknown } | undefined)?.checked)
    .filter((each) => each instanceof CheckedProperty);
  const names = new Set(properties.map(({ name }) => name));
  for (const name of names) FIELD_NAMES.set(name, name);
  const isOurs = names.size === rules.length && !hasTransformersBeside(type, [...names]);
  return {
    hasRules: rules.length > 0,
    // In the order of the schema, ancestors' first, if only our decorators describe them. Otherwise class-transformer and
    // class-validator read and check the class.
    properties: rules.length > 0 && isOurs ? properties : undefined,
    arrays: properties.filter(({ isArray }) => isArray).map(({ name }) => name),
  };
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
