import { LosslessNumber, parse, stringify } from 'lossless-json';
import { attempt, invalidArgument } from './arguments.js';
import { INT64_MEMBERS } from './generated/int64-members.js';

/**
 * Reads JSON text. Members that the API declares as int64 (`id`, `categoryId`) or as arrays of int64 become bigint; all
 * other numbers become number.
 *
 * @throws PetStoreError `invalid_argument` when the text is not JSON, or an int64 member is no integer
 * @example const pet = fromJson(text) as Pet;
 */
export function fromJson(text: string): unknown {
  if (typeof text !== 'string') throw invalidArgument('text', { text: 'a string' }, text);
  return attempt('text must be JSON', () => withNumbers('', parse(text)));
}

/** The items of an array are numbers of the kind of its member. */
function withNumbers(member: string, value: unknown): unknown {
  if (value instanceof LosslessNumber) {
    return INT64_MEMBERS.has(member) ? BigInt(value.value) : Number(value.value);
  }
  if (Array.isArray(value)) return value.map((item) => withNumbers(member, item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, content]) => [name, withNumbers(name, content)]));
}

/**
 * Writes JSON text, a bigint as a JSON number with all its digits. `JSON.stringify` throws for a bigint.
 *
 * @throws PetStoreError `invalid_argument` when JSON cannot express the value
 * @example localStorage.setItem('pet', toJson(pet));
 */
export function toJson(value: unknown): string {
  const text = attempt('value cannot be written as JSON', () => stringify(value, expressible));
  if (text === undefined) throw invalidArgument('value', { text: 'a value that JSON can express' }, value);
  return text;
}

/** A replacer: refuses what JSON would silently leave out or turn into null. */
function expressible(member: string, content: unknown): unknown {
  const isLost = typeof content === 'function' || typeof content === 'symbol' || Number.isNaN(content);
  if (isLost || content === Infinity || content === -Infinity) {
    throw invalidArgument(member === '' ? 'value' : member, { text: 'a value that JSON can express' }, content);
  }
  return content;
}

/**
 * The body of a request.
 *
 * @param name the name of the value, for messages
 * @throws PetStoreError `invalid_argument` when it is no object, cannot be written, or an int64 member is not a bigint
 */
export function writeBody(name: string, value: object): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalidArgument(name, { text: 'an object' }, value);
  }
  const text = attempt(`${name} cannot be written as JSON`, () =>
    stringify(value, (member, content) => {
      if (INT64_MEMBERS.has(member) && content !== undefined) {
        for (const one of Array.isArray(content) ? content : [content]) requireBigint(member, one);
      }
      return expressible(member, content);
    }),
  );
  if (text === undefined) throw invalidArgument(name, { text: 'an object that JSON can express' }, value);
  return text;
}

/** @throws PetStoreError `invalid_argument` when the value is not a bigint: a number may already have lost digits */
export function requireBigint(name: string, value: unknown): asserts value is bigint {
  if (typeof value === 'bigint') return;
  const text = 'a bigint such as 7n, because a number may already have lost digits';
  throw invalidArgument(name, { text }, value);
}
