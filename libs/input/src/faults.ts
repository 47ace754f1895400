import type { ValidationError } from '@nestjs/common';
import type { Fault } from '#errors';
import { DECLARED } from './declared-members.js';
import type { CheckedProperty } from './input-class.js';

/** The rules of class-validator about the type of a value: without the type, its other rules say nothing. */
const TYPE_RULES = (
  'isDefined isArray isObject isInstance isString isBoolean isNumber isInt isDate isEnum isIn isNumberString isBooleanString ' +
  'isDateString isIso8601 nestedValidation'
).split(' ');

/** The beginning of the clause of `@ValidateNested` for an item, which names the list again. */
const NESTED_EACH = /^each value in nested property \S+(?= must be either object or array$)/;

/** Thrown by a ValidationPipe in place of an exception. */
export class RefusedInput extends Error {
  constructor(readonly errors: readonly ValidationError[]) {
    super();
  }
}

/**
 * The faults that class-validator has found, one for each property: that about its type, else that of the rule that stands first
 * in the class. Members of a value of a wrong type have none. The names are those of the class.
 *
 * @param path the name of the value that was validated; empty for the whole input
 */
export function faultsOf(errors: readonly ValidationError[], path: string): Fault[] {
  return errors.flatMap((error) => {
    const fault = faultOf(error, path);
    const isOfType = fault !== undefined && (TYPE_RULES.includes(fault.rule) || fault.rule === 'type');
    const ofMembers = isOfType ? [] : faultsOf(error.children ?? [], joined(path, error.property));
    return fault === undefined ? ofMembers : [fault, ...ofMembers];
  });
}

function faultOf(
  { property, value, constraints = {}, contexts = {} }: ValidationError,
  path: string,
): Fault | undefined {
  // Decorators are applied from the last one to the first.
  const rules = Object.keys(constraints).reverse();
  const rule = TYPE_RULES.find((name) => rules.includes(name)) ?? rules[0];
  if (rule === undefined) return undefined;
  const context: unknown = contexts[rule];
  if (rule === DECLARED) return (context as { checked: CheckedProperty }).checked.faultOf(value, {}, path);
  const clause = (constraints[rule] as string).replace(NESTED_EACH, property);
  return {
    property: joined(path, property),
    rule,
    message: joined(path, clause),
    ...(context !== undefined && { context }),
  };
}

/** A name or a clause behind the path of its value. */
function joined(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}
