import { type ArgumentMetadata, Injectable, type PipeTransform, type Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validate, type ValidationError } from 'class-validator';
import { ApiError } from '../errors/api-error.js';
import { BAD_REQUEST, type ErrorDefinition, INVALID_PARAMETER, VALIDATION_FAILED } from '../errors/error-catalogue.js';
import { nearestName } from '../nearest-name.js';
import { CHECKED_PROPERTY } from './properties/checked-property.js';
import { checkedPropertyAt, type InputClass, inputClassOf, isInputClass } from './properties/input-class.js';
import { INVALID, MAX_FAULTS } from './properties/rule.js';
import { addMemberFaults, readInstance } from './properties/structures.js';

type Fields = Record<string, unknown>;

/** At most this many unknown or repeated parameter names are listed in one message. */
const MAX_NAMED_FAULTS = 10;

/** Rules about the type of a value. Their clauses come first: other rules mean nothing for a value of the wrong type. */
const TYPE_RULES = [
  CHECKED_PROPERTY,
  'isDefined',
  'isString',
  'isNumber',
  'isInt',
  'isBoolean',
  'isArray',
  'isObject',
  'isDate',
];

/** class-validator's name for its rule about nested objects. */
const NESTED_VALIDATION = 'nestedValidation';

/**
 * Makes an instance of the class that a handler declares for `@Body()`, `@Body('member')`, `@Query()` or `@Param()`. If
 * the input does not fit the class, the message lists every fault, in the order of the class's properties. Undeclared
 * members of a body are dropped. Undeclared query parameters are refused, and so are repeated ones unless the class
 * declares an array.
 *
 * As in Nest's ValidationPipe, class-transformer fills a class without any rule with everything that was sent; only the
 * type, an object, is checked. `@Query('name')` of type string accepts at most one value. Values of other types pass
 * unchanged: `InputCheck` allows them only where a pipe checks them.
 *
 * @throws ApiError VALIDATION_FAILED for a body, INVALID_PARAMETER for a query, BAD_REQUEST for a path
 */
@Injectable()
export class InputPipe implements PipeTransform {
  transform(value: unknown, { type, metatype, data }: ArgumentMetadata): unknown {
    if (type === 'body') {
      return isInputClass(metatype) ? readBody(metatype, value, data) : value;
    }
    if (type === 'query') {
      return isInputClass(metatype) ? readQuery(metatype, value as Fields) : readParameter(metatype, value, data);
    }
    if (type === 'param' && data === undefined && isInputClass(metatype)) {
      return makeInstance(metatype, inputClassOf(metatype), value as Fields, BAD_REQUEST, '');
    }
    return value;
  }
}

/** @param member the member of the body for which the handler declares the class; undefined for the body itself */
function readBody(metatype: Type, value: unknown, member: string | undefined): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const what = member ?? 'the body';
    throw new ApiError(
      VALIDATION_FAILED,
      value === undefined ? `${what} is required` : `${what} must be a JSON object`,
    );
  }
  const prefix = member === undefined ? '' : `${member}.`;
  return makeInstance(metatype, inputClassOf(metatype), value as Fields, VALIDATION_FAILED, prefix);
}

function readQuery(metatype: Type, query: Fields): unknown {
  const input = inputClassOf(metatype);
  const faults = input.names.length > 0 ? queryFaults(query, input) : [];
  if (faults.length > 0) {
    throw new ApiError(INVALID_PARAMETER, faults.join('; '));
  }
  return makeInstance(metatype, input, withArrays(query, input.arrays), INVALID_PARAMETER, '');
}

/** Turns a single value of a parameter that is declared as an array into an array of one item. */
function withArrays(query: Fields, names: readonly string[]): Fields {
  const single = names.filter((name) => query[name] !== undefined && !Array.isArray(query[name]));
  return single.length === 0 ? query : { ...query, ...Object.fromEntries(single.map((name) => [name, [query[name]]])) };
}

function readParameter(metatype: unknown, value: unknown, name: string | undefined): unknown {
  if (name !== undefined && metatype === String && Array.isArray(value)) {
    throw new ApiError(INVALID_PARAMETER, givenTwice(name));
  }
  return value;
}

function makeInstance(
  metatype: Type,
  { names, properties }: InputClass,
  sent: Fields,
  definition: ErrorDefinition,
  prefix: string,
): unknown {
  if (properties) {
    const instance = readInstance(metatype, properties, sent);
    if (instance !== INVALID) return instance;
    const faults: string[] = [];
    addMemberFaults(properties, sent, prefix, faults);
    throw new ApiError(definition, faults.join('; '));
  }
  const instance = plainToInstance(metatype as Type<object>, sent);
  return names.length === 0 ? instance : validated(instance, definition, prefix);
}

async function validated(instance: object, definition: ErrorDefinition, prefix: string): Promise<unknown> {
  const faults: string[] = [];
  listFaults(await validate(instance, { whitelist: true }), prefix, faults);
  if (faults.length > 0) {
    throw new ApiError(definition, faults.join('; '));
  }
  return instance;
}

/** Adds the clauses of errors to a list, one for each property, up to MAX_FAULTS. */
function listFaults(errors: readonly ValidationError[], prefix: string, faults: string[]): void {
  for (const { target, property, value, constraints = {}, children = [] } of errors) {
    if (faults.length >= MAX_FAULTS) return;
    const ours = target && checkedPropertyAt(target, property);
    // class-validator reports null for a nested object even if the property is nullable.
    const broken = Object.keys(constraints).filter((name) => !ours?.rule.nestedClass || name !== NESTED_VALIDATION);
    const rule = TYPE_RULES.find((name) => broken.includes(name)) ?? broken[0];
    if (rule === CHECKED_PROPERTY && ours) {
      ours.addFaults(value, prefix, faults);
      continue;
    }
    if (rule !== undefined) faults.push(`${prefix}${constraints[rule]}`);
    // The path of an item is `items[2]`.
    const path = Array.isArray(target) ? `${prefix.slice(0, -1)}[${property}]` : `${prefix}${property}`;
    listFaults(children, `${path}.`, faults);
  }
}

function queryFaults(query: Fields, { names, lists }: InputClass): string[] {
  const faults: string[] = [];
  for (const name of Object.keys(query)) {
    if (faults.length === MAX_NAMED_FAULTS) break;
    if (!names.includes(name)) {
      const nearest = nearestName(name, names);
      const advice = nearest === undefined ? `known are ${names.join(', ')}` : `did you mean '${nearest}'?`;
      faults.push(`unknown query parameter '${name}'; ${advice}`);
    } else if (Array.isArray(query[name]) && !lists.includes(name)) {
      faults.push(givenTwice(name));
    }
  }
  return faults;
}

function givenTwice(name: string): string {
  return `query parameter '${name}' must be given only once`;
}
