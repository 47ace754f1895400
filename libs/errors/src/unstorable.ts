import type { Fault } from './api-error.js';

/** Finds a text that PostgreSQL cannot store unchanged. */
export const UNSTORABLE = /\0|\p{Surrogate}/u;

const TEXT = 'must not contain NUL, unpaired surrogates or bytes that are not UTF-8';
const NUMBER = 'must be a number that a double can hold';
const DATE = 'must be a date from 4713 BC on';

/** The first time of PostgreSQL in ms since 1970, the day 0 of the Julian calendar. Its last one is later than that of Date. */
const FIRST_TIME = Date.UTC(-4713, 10, 24);

/**
 * The fault of the first text, number or date within an input that PostgreSQL cannot store, also of the name of a member.
 *
 * @param path the name of the value in the fault; empty for the whole input
 */
export function unstorableIn(value: unknown, path = ''): Fault | undefined {
  return find(value, path, new Set());
}

/** NaN and invalid dates are what a conversion, such as `@Type(() => Date)`, has made of something else. */
function faultOf(value: unknown): string | undefined {
  if (typeof value === 'string') return UNSTORABLE.test(value) ? TEXT : undefined;
  if (value instanceof Date) return value.getTime() >= FIRST_TIME ? undefined : DATE;
  return typeof value === 'number' && !Number.isFinite(value) ? NUMBER : undefined;
}

function find(value: unknown, path: string, seen: Set<object>): Fault | undefined {
  if (typeof value !== 'object' || value === null || value instanceof Date) {
    const clause = faultOf(value);
    return clause === undefined ? undefined : storable(path, `${path || 'the input'} ${clause}`);
  }
  if (seen.has(value) || ArrayBuffer.isView(value)) return undefined;
  seen.add(value);
  for (const [name, member] of Object.entries(withMembers(value))) {
    if (UNSTORABLE.test(name)) return storable(path, `the names of members of ${path || 'the body'} ${TEXT}`);
    const fault = find(member, path === '' ? name : `${path}.${name}`, seen);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function storable(property: string, message: string): Fault {
  return { property, rule: 'storable', message };
}

/** Maps and Sets, which class-transformer makes of objects and arrays, as these. */
function withMembers(value: object): object {
  if (value instanceof Map) return Object.fromEntries(value as Map<string, unknown>);
  return value instanceof Set ? [...value] : value;
}
