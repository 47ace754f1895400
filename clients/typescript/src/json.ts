import { LosslessNumber, parse, stringify } from 'lossless-json';
import { INT64_MEMBERS } from './generated/int64-members.js';

/**
 * Reads JSON text. Members that the API declares as int64 or as arrays of int64 become bigint; all other numbers become
 * number.
 *
 * @throws SyntaxError when the text is not JSON, or an int64 member is no integer
 */
export function readJson(text: string): unknown {
  return withNumbers('', parse(text));
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
 * Writes JSON text, a bigint as a JSON number with all its digits.
 *
 * @throws TypeError when an int64 member is not a bigint: a number may already have lost digits
 */
export function writeJson(value: object): string {
  const text = stringify(value, (member, content) => {
    if (INT64_MEMBERS.has(member) && content !== undefined) {
      for (const one of Array.isArray(content) ? content : [content]) requireBigint(member, one);
    }
    return content;
  });
  return text as string;
}

/** @throws TypeError when the value is not a bigint */
export function requireBigint(name: string, value: unknown): asserts value is bigint {
  if (typeof value !== 'bigint') {
    const given = value === null ? 'null' : typeof value;
    throw new TypeError(`${name} must be a bigint such as 7n, not ${given}: a number may already have lost digits`);
  }
}
