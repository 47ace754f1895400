import type { Type } from '@nestjs/common';
import { TransformationType } from 'class-transformer';
import { defaultMetadataStorage as transformers } from 'class-transformer/cjs/storage.js';
import { getMetadataStorage as getValidators, IS_OPTIONAL } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';
import { type CheckedProperty, checkedPropertyOf, looksInside } from './checked-property.js';

/** A class that a handler declares for its input, as its decorators describe it. */
export interface InputClass {
  /** The properties that have rules: those of ancestors first, and within a class in the order of declaration. */
  readonly names: readonly string[];
  /** The properties that accept a repeated query parameter: arrays, and properties without one declared type. */
  readonly lists: readonly string[];
  /** The properties declared with `@ArrayProperty`: a query parameter given once becomes an array, too. */
  readonly arrays: readonly string[];
  /**
   * The properties, if only our decorators describe them and those of the nested classes. Then class-validator and
   * class-transformer are not used.
   */
  readonly properties: readonly CheckedProperty[] | undefined;
  /** Whether a property, here or in a nested class, refuses JSON numbers of more digits than a double keeps. */
  readonly needsAllDigits: boolean;
}

/** The metadata of one class and of its ancestors. */
interface Reflected {
  readonly names: readonly string[];
  readonly lists: readonly string[];
  readonly checked: readonly CheckedProperty[];
  /** Whether decorators of class-validator or class-transformer stand beside ours. */
  readonly isMixed: boolean;
  readonly nested: readonly Type[];
}

/** Types that Nest's ValidationPipe does not validate either: they are no classes of an application. */
const BUILT_IN: readonly unknown[] = [String, Boolean, Number, BigInt, Symbol, Array, Object, Buffer, Date];

/** Whether the declared type of a parameter is a class of the application, to be instantiated from the input. */
export function isInputClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && !BUILT_IN.includes(metatype);
}

/** Reflection is slow; its results are cached by class. */
const known = new WeakMap<Type, InputClass>();
const reflections = new WeakMap<Type, Reflected>();

/** Describes a class; every call with the same class returns the same object. */
export function inputClassOf(type: Type): InputClass {
  let input = known.get(type);
  if (input === undefined) {
    input = describe(type);
    known.set(type, input);
  }
  return input;
}

/** The checked property of this name in the class of an instance; undefined if there is none. */
export function checkedPropertyAt(instance: object, name: string): CheckedProperty | undefined {
  const { constructor } = instance;
  return isInputClass(constructor)
    ? reflect(constructor).checked.find((property) => property.name === name)
    : undefined;
}

function describe(type: Type): InputClass {
  const { names, lists, checked } = reflect(type);
  const all = [...withNested(type)].map(reflect);
  return {
    names,
    lists,
    arrays: checked.filter(({ rule }) => rule.isArray).map(({ name }) => name),
    properties: names.length === 0 || all.some(({ isMixed }) => isMixed) ? undefined : checked,
    needsAllDigits: all.some((each) => each.checked.some(({ rule }) => rule.needsAllDigits)),
  };
}

/** A class and all classes nested in it, at any depth; a class may contain itself. */
function withNested(type: Type, found = new Set<Type>()): Set<Type> {
  if (!found.has(type)) {
    found.add(type);
    for (const nested of reflect(type).nested) withNested(nested, found);
  }
  return found;
}

function reflect(type: Type): Reflected {
  let reflected = reflections.get(type);
  if (reflected === undefined) {
    reflected = reflectOnce(type);
    reflections.set(type, reflected);
  }
  return reflected;
}

function reflectOnce(type: Type): Reflected {
  // class-validator lists the rules of the class itself first; ancestors must come first.
  const rules = getValidators()
    .getTargetValidationMetadatas(type, '', true, false)
    .filter((rule) => !looksInside(rule))
    .sort((one, other) => generations(other.target, type) - generations(one.target, type));
  const names = [...new Set(rules.map((rule) => rule.propertyName))];
  const checked = rules.map(checkedPropertyOf).filter((property) => property !== undefined);
  const isMixed =
    names.length !== rules.length || checked.length !== rules.length || isTransformed(type, names, checked);
  refuseNull(rules);
  const lists = names.filter((name) => takesList(type, name, rules));
  return { names, lists, checked, isMixed, nested: names.flatMap((name) => nestedClassesOf(type, name)) };
}

/**
 * Changes `@IsOptional()` on a checked property to allow a missing value, but not null, which its schema excludes.
 * `PartialType` adds `@IsOptional()` to every property.
 */
function refuseNull(rules: readonly ValidationMetadata[]): void {
  const ours = rules.filter((rule) => checkedPropertyOf(rule) !== undefined).map((rule) => rule.propertyName);
  for (const rule of rules) {
    if (rule.name === IS_OPTIONAL && ours.includes(rule.propertyName)) {
      rule.constraints = [(object: Record<string, unknown>) => object[rule.propertyName] !== undefined];
    }
  }
}

/** The classes that `@Type()` names for a property, those of its discriminator included. */
function nestedClassesOf(type: Type, name: string): Type[] {
  const metadata = transformers.findTypeMetadata(type, name) as
    ReturnType<typeof transformers.findTypeMetadata> | undefined;
  if (metadata === undefined) return [];
  const { typeFunction, options } = metadata;
  const subTypes = options?.discriminator?.subTypes.map(({ value }) => value) ?? [];
  return [chosenClass(typeFunction as TypeFunction, name), ...subTypes].filter(isInputClass);
}

type TypeFunction = (help: { newObject: object; object: object; property: string }) => unknown;

/** The class that the function of `@Type()` returns. It may fail, because it may need the object to be read. */
function chosenClass(typeFunction: TypeFunction, property: string): unknown {
  try {
    return typeFunction({ newObject: {}, object: {}, property });
  } catch {
    return undefined;
  }
}

/** Declared types that an array may satisfy. TypeScript emits Object for unions and unknown. */
const LIST_TYPES: readonly unknown[] = [Array, Object, Set];

function takesList(type: Type, name: string, rules: readonly ValidationMetadata[]): boolean {
  const ofProperty = rules.filter((rule) => rule.propertyName === name);
  const ours = ofProperty.map(checkedPropertyOf).find((property) => property !== undefined);
  if (ours) return ours.rule.isArray === true;
  return (
    ofProperty.some((rule) => rule.each) ||
    LIST_TYPES.includes(Reflect.getMetadata('design:type', type.prototype as object, name))
  );
}

/** The number of inheritance steps from a class to its ancestor. */
function generations(ancestor: unknown, type: Type): number {
  let count = 0;
  for (let parent: unknown = type; parent !== ancestor && parent !== null; parent = Object.getPrototypeOf(parent)) {
    count++;
  }
  return count;
}

/** Whether the class or one of these properties has class-transformer decorators besides those that ours register. */
function isTransformed(type: Type, names: readonly string[], checked: readonly CheckedProperty[]): boolean {
  return (
    transformers.getStrategy(type) !== 'none' ||
    transformers.getExposedMetadatas(type).length > 0 ||
    transformers.getExcludedMetadatas(type).length > 0 ||
    names.some((name) => {
      const nestedClass = checked.find((property) => property.name === name)?.rule.nestedClass;
      const transforms = transformers.findTransformMetadatas(type, name, TransformationType.PLAIN_TO_CLASS);
      // Our decorator registers one transformation for each property.
      return nestedClass
        ? transformers.findTypeMetadata(type, name)?.typeFunction !== nestedClass || transforms.length > 0
        : transformers.findTypeMetadata(type, name) !== undefined || transforms.length > 1;
    })
  );
}
