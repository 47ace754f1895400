import type { Type } from '@nestjs/common';
import { TransformationType } from 'class-transformer';
import { defaultMetadataStorage as transformers } from 'class-transformer/cjs/storage.js';
import { getMetadataStorage as getValidators, IS_OPTIONAL } from 'class-validator';
import type { ValidationMetadata } from 'class-validator/types/metadata/ValidationMetadata.js';
import { type CheckedProperty, checkedPropertyOf } from './property.decorators.js';

/** What is known of a class that a handler declares for its input. */
export interface InputClass {
  /** Its properties that have rules: those of its ancestors first, each class's in the order of their declaration. */
  readonly names: readonly string[];
  /** Those of them that take a query parameter given several times: arrays, and what no single type is declared for. */
  readonly lists: readonly string[];
  /**
   * Its properties, when our decorators say all about them: then neither class-validator nor class-transformer is asked.
   * Each of them is a scalar.
   */
  readonly properties: readonly CheckedProperty[] | undefined;
}

/** What Nest's ValidationPipe takes for no class of an application: values of these are not validated. */
const BUILT_IN: readonly unknown[] = [String, Boolean, Number, BigInt, Symbol, Array, Object, Buffer, Date];

/** Whether the declared type of a parameter is a class of the application, of which instances are made. */
export function isInputClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && !BUILT_IN.includes(metatype);
}

/** Reflection is slow and its result fixed, so each class is looked at once. */
const known = new WeakMap<Type, InputClass>();

/** The same object for each call with a class. */
export function inputClassOf(type: Type): InputClass {
  let input = known.get(type);
  if (input === undefined) {
    input = reflect(type);
    known.set(type, input);
  }
  return input;
}

function reflect(type: Type): InputClass {
  // class-validator gives the rules of the class itself first.
  const rules = getValidators()
    .getTargetValidationMetadatas(type, '', true, false)
    .sort((one, other) => generations(other.target, type) - generations(one.target, type));
  const names = [...new Set(rules.map((rule) => rule.propertyName))];
  const properties = rules.map(checkedPropertyOf);
  const isOurs =
    names.length > 0 &&
    names.length === rules.length &&
    properties.every((property) => property !== undefined) &&
    !isTransformed(type, names);
  refuseNull(rules);
  const lists = names.filter((name) => takesList(type, name, rules));
  return { names, lists, properties: isOurs ? properties : undefined };
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

/** Declared types of properties that an array may fit. TypeScript emits Object for unions and unknown. */
const LIST_TYPES: readonly unknown[] = [Array, Object, Set];

function takesList(type: Type, name: string, rules: readonly ValidationMetadata[]): boolean {
  const ofProperty = rules.filter((rule) => rule.propertyName === name);
  if (ofProperty.some((rule) => checkedPropertyOf(rule) !== undefined)) return false;
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
function isTransformed(type: Type, names: readonly string[]): boolean {
  return (
    transformers.getStrategy(type) !== 'none' ||
    transformers.getExposedMetadatas(type).length > 0 ||
    transformers.getExcludedMetadatas(type).length > 0 ||
    names.some(
      (name) =>
        transformers.findTypeMetadata(type, name) !== undefined ||
        // One is ours.
        transformers.findTransformMetadatas(type, name, TransformationType.PLAIN_TO_CLASS).length > 1,
    )
  );
}
