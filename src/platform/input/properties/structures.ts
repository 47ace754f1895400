import type { Type } from '@nestjs/common';
import type { CheckedProperty } from './checked-property.js';
import { inputClassOf } from './input-class.js';
import { INVALID, MAX_FAULTS, type Rule, type SchemaKeywords } from './rule.js';

type Fields = Record<string, unknown>;

/** Makes an instance of a class from the members that were sent; INVALID if a property refuses its value. */
export function readInstance(type: Type, properties: readonly CheckedProperty[], sent: Fields): unknown {
  const instance = new type() as Fields;
  for (const property of properties) {
    const read = property.read(sent[property.name]);
    if (read === INVALID) return INVALID;
    if (read !== undefined) instance[property.name] = read;
  }
  return instance;
}

/** Adds the clauses for the members that the properties of a class refuse, up to MAX_FAULTS. */
export function addMemberFaults(
  properties: readonly CheckedProperty[],
  sent: Fields,
  prefix: string,
  faults: string[],
): void {
  for (const property of properties) {
    if (faults.length >= MAX_FAULTS) return;
    const value = sent[property.name];
    if (property.read(value) === INVALID) property.addFaults(value, prefix, faults);
  }
}

/** An object that is read as an instance of a class. `type` is a function, so that classes may name each other. */
export function object(type: () => Type): Rule {
  return {
    // @nestjs/swagger recognises a lazy type function by its name, `type`.
    schema: { type: () => type() },
    nestedClass: type,
    read(sent) {
      return isObject(sent) ? readInstance(type(), inputClassOf(type()).properties ?? [], sent) : INVALID;
    },
    isValid: isObject,
    addFaults(sent, path, orNull, faults) {
      if (isObject(sent)) {
        addMemberFaults(inputClassOf(type()).properties ?? [], sent, `${path}.`, faults);
      } else {
        faults.push(`${path} must be a JSON object${orNull}`);
      }
    },
  };
}

/** An array of `minItems` to `maxItems` values of one rule, which is that of a scalar or of an object. */
export function array(items: Rule, minItems: number, maxItems: number): Rule {
  const isArray = (value: unknown): value is unknown[] =>
    Array.isArray(value) && value.length >= minItems && value.length <= maxItems;
  return {
    schema: { ...arrayOf(items), minItems, maxItems },
    isArray: true,
    ...(items.nestedClass && { nestedClass: items.nestedClass }),
    ...(items.needsAllDigits && { needsAllDigits: true }),
    read(sent) {
      if (!isArray(sent)) return INVALID;
      const read = sent.map((item) => items.read(item));
      return read.includes(INVALID) ? INVALID : read;
    },
    isValid(value) {
      return isArray(value) && value.every((item) => items.isValid(item));
    },
    addFaults(sent, path, orNull, faults) {
      if (!isArray(sent)) {
        faults.push(`${path} must be a JSON array of ${minItems} to ${maxItems} items${orNull}`);
        return;
      }
      for (const [index, item] of sent.entries()) {
        if (faults.length >= MAX_FAULTS) return;
        if (items.read(item) === INVALID) items.addFaults(item, `${path}[${index}]`, '', faults);
      }
    },
  };
}

/** The schema of an array. For classes and named enumerations @nestjs/swagger makes it from `isArray`. */
function arrayOf({ schema, nestedClass }: Rule): SchemaKeywords {
  return nestedClass || schema['enumName'] !== undefined
    ? { ...schema, isArray: true }
    : ({ type: 'array', items: schema } as SchemaKeywords);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
