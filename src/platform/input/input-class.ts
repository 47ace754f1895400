import type { Type } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { hasTransformersBeside } from '../internals/class-transformer.js';
import { CheckedProperty } from './checked-property.js';

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
  // class-validator lists the class's own rules first, then those of its ancestors in the order of their definition.
  const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', true, false);
  const isOwn = ({ target }: { target: unknown }): boolean => target === type;
  const inOrder = [...rules.filter((rule) => !isOwn(rule)), ...rules.filter(isOwn)];
  const properties = inOrder.map((rule) => rule.context as unknown).filter((each) => each instanceof CheckedProperty);
  const names = new Set(properties.map(({ name }) => name));
  const isOurs = names.size === rules.length && !hasTransformersBeside(type, [...names]);
  return { hasRules: rules.length > 0, properties: rules.length > 0 && isOurs ? properties : undefined };
}
