import type { Type } from '@nestjs/common';
import { TransformationType } from 'class-transformer';
import { defaultMetadataStorage as transformers } from 'class-transformer/cjs/storage.js';
import { getMetadataStorage as getValidators, IS_OPTIONAL } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';
import { type CheckedProperty, checkedPropertyOf, looksInside } from './checked-property.js';

/** What is known of a class that a handler declares for its input. */
export interface InputClass {
  /** Its properties that have rules: those of its ancestors first, each class's in the order of their declaration. */
  readonly names: readonly string[];
  /** Those of them that take a query parameter given several times: arrays, and what no single type is declared for. */
  readonly lists: readonly string[];
  /** Those of them that are arrays by our decorator, so that a query parameter given once is an array too. */
  readonly arrays: readonly string[];
  /**
   * Its properties, when our decorators say all about them, and about the classes nested in it: then neither class-validator
   * nor class-transformer is asked.
   */
  readonly properties: readonly CheckedProperty[] | undefined;
  /** Whether a property, here or in a nested class, refuses JSON numbers of more digits than a double keeps. */
  readonly needsAllDigits: boolean;
}

/** What the decorators of one class and of its ancestors say. */
interface Reflected {
  readonly names: readonly string[];
  readonly lists: readonly string[];
  readonly checked: readonly CheckedProperty[];
  /** Whether decorators of class-validator or class-transformer stand beside ours. */
  readonly isMixed: boolean;
  readonly nested: readonly Type[];
}

/** What Nest's ValidationPipe takes for no class of an application: values of these are not validated. */
const BUILT_IN: readonly unknown[] = [String, Boolean, Number, BigInt, Symbol, Array, Object, Buffer, Date];

/** Whether the declared type of a parameter is a class of the application, of which instances are made. */
export function isInputClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && !BUILT_IN.includes(metatype);
}

/** Reflection is slow and its result fixed, so each class is looked at once. */
const known = new WeakMap<Type, InputClass>();
const reflections = new WeakMap<Type, Reflected>();

/** The same object for each call with a class. */
export function inputClassOf(type: Type): InputClass {
  let input = known.get(type);
  if (input === undefined) {
    input = describe(type);
    known.set(type, input);
  }
  return input;
}

/** The property by our decorator that an instance of a class has under a name; undefined when there is none. */
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

/** A class, and those that are nested in it at any depth, which may be itself. */
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
  // class-validator gives the rules of the class itself first.
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
 * Lets `@IsOptional()` beside a decorator of ours mean that a member may be missing, not that it may be null: the document
 * says which type it has. `PartialType` puts one at every property.
 */
function refuseNull(rules: readonly ValidationMetadata[]): void {
  const ours = rules.filter((rule) => checkedPropertyOf(rule) !== undefined).map((rule) => rule.propertyName);
  for (const rule of rules) {
    if (rule.name === IS_OPTIONAL && ours.includes(rule.propertyName)) {
      rule.constraints = [(object: Record<string, unknown>) => object[rule.propertyName] !== undefined];
    }
  }
}

/** The classes that `@Type()` names for a property, in its discriminator too. */
function nestedClassesOf(type: Type, name: string): Type[] {
  const metadata = transformers.findTypeMetadata(type, name) as
    ReturnType<typeof transformers.findTypeMetadata> | undefined;
  if (metadata === undefined) return [];
  const { typeFunction, options } = metadata;
  const subTypes = options?.discriminator?.subTypes.map(({ value }) => value) ?? [];
  return [chosenClass(typeFunction as TypeFunction, name), ...subTypes].filter(isInputClass);
}

type TypeFunction = (help: { newObject: object; object: object; property: string }) => unknown;

/** A function may choose by the object, which nobody has sent yet. */
function chosenClass(typeFunction: TypeFunction, property: string): unknown {
  try {
    return typeFunction({ newObject: {}, object: {}, property });
  } catch {
    return undefined;
  }
}

/** Declared types of properties that an array may fit. TypeScript emits Object for unions and unknown. */
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

/** How many times a class extends until it is that ancestor. */
function generations(ancestor: unknown, type: Type): number {
  let count = 0;
  for (let parent: unknown = type; parent !== ancestor && parent !== null; parent = Object.getPrototypeOf(parent)) {
    count++;
  }
  return count;
}

/** Whether decorators of class-transformer stand at the class or at one of these properties, beside those of ours. */
function isTransformed(type: Type, names: readonly string[], checked: readonly CheckedProperty[]): boolean {
  return (
    transformers.getStrategy(type) !== 'none' ||
    transformers.getExposedMetadatas(type).length > 0 ||
    transformers.getExcludedMetadatas(type).length > 0 ||
    names.some((name) => {
      const nestedClass = checked.find((property) => property.name === name)?.rule.nestedClass;
      const transforms = transformers.findTransformMetadatas(type, name, TransformationType.PLAIN_TO_CLASS);
      // Of each property one is ours.
      return nestedClass
        ? transformers.findTypeMetadata(type, name)?.typeFunction !== nestedClass || transforms.length > 0
        : transformers.findTypeMetadata(type, name) !== undefined || transforms.length > 1;
    })
  );
}
