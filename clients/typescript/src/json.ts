import { LosslessNumber, parse, stringify } from 'lossless-json';
import { INT64_MEMBERS } from './generated/int64-members.js';

/**
 * Reads JSON text. Members that the API declares as int64 become bigint, all other numbers number.
 *
 * @throws SyntaxError when the text is not JSON, or an int64 member is no integer
 */
export function readJson(text: string): unknown {
  return parse(text, (member, value) => {
    if (!(value instanceof LosslessNumber)) return value;
    return INT64_MEMBERS.has(member) ? BigInt(value.value) : Number(value.value);
  });
}

/**
 * Writes JSON text, a bigint as a JSON number with all its digits.
 *
 * @throws TypeError when an int64 member is not a bigint: a number may already have lost digits
 */
export function writeJson(value: object): string {
  const text = stringify(value, (member, content) => {
    if (INT64_MEMBERS.has(member) && content !== undefined) requireBigint(member, content);
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
