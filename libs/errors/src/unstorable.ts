import type { Request } from 'express';
import { type ApiError, type Fault, faultyInput } from './api-error.js';
import { BAD_REQUEST, INVALID_PARAMETER, VALIDATION_FAILED } from './error-catalogue.js';

/** Finds a text that PostgreSQL cannot store unchanged. */
export const UNSTORABLE = /\0|\p{Surrogate}/u;

const TEXT = 'must not contain NUL, unpaired surrogates or bytes that are not UTF-8';
const NUMBER = 'must be a number that a double can hold';
const DATE = 'must be a date from 4713 BC on';

/** The first time of PostgreSQL in ms since 1970, the day 0 of the Julian calendar. Its last one is later than that of Date. */
const FIRST_TIME = Date.UTC(-4713, 10, 24);

/** Error codes of PostgreSQL for text that it cannot store. */
const OF_TEXTS = ['22021', '22P05', '22P02'];

/** The class of its codes for values that a type or function cannot take. Most of the messages quote the value. */
const OF_VALUES = /^22...$/;

/** The clause for a value that is the cause; undefined for any other. */
type Finder = (value: unknown) => string | undefined;

/**
 * The fault of the first text, number or date within an input that PostgreSQL cannot store, also of the name of a member;
 * undefined without one. Looks into arrays, plain objects, instances of input classes, and their Maps and Sets.
 *
 * @param path the name of the value in the fault; empty for the whole input
 */
export function unstorableIn(value: unknown, path = ''): Fault | undefined {
  return find(value, path, faultOf, new Set());
}

/**
 * The 400 for an error of PostgreSQL that the input of the request has caused: it names the member. Undefined for any other error:
 * a value that the module has made itself is its bug.
 */
export function refusedInputOf(error: unknown, request: Request): ApiError | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  const code = error.code as string;
  // The value may have quotes of its own. French has spaces within the quotes.
  const quoted = /["»„«](.*)["«“”»]/s.exec(error.message)?.[1]?.trim();
  const isQuoted = (value: unknown): boolean =>
    typeof value === 'number'
      ? quoted !== '' && Number(quoted) === value
      : (typeof value === 'string' || typeof value === 'bigint') && String(value).trim() === quoted;
  const exceeds = boundOf(error as Error & { code: string; detail?: string });
  const finder: Finder = (value) => {
    if (OF_TEXTS.includes(code) && faultOf(value) !== undefined) return faultOf(value);
    return OF_VALUES.test(code) && quoted !== undefined && isQuoted(value)
      ? 'must be a value that can be stored'
      : exceeds(value);
  };
  const { body, file, files, query, params, headers } = request as unknown as Readonly<Record<string, unknown>>;
  const sources = [
    [VALIDATION_FAILED, body],
    // Of multer. The name of a file may be percent-encoded (RFC 5987).
    [VALIDATION_FAILED, { file, files }],
    [INVALID_PARAMETER, query],
    [BAD_REQUEST, params],
    [BAD_REQUEST, headers],
  ] as const;
  for (const [definition, input] of sources) {
    const fault = find(input, '', finder, new Set());
    if (fault !== undefined) return faultyInput(definition, [fault], error);
  }
  return undefined;
}

/**
 * Finds a value that exceeds the length of a text or the digits of a numeric. PostgreSQL does not quote such a value, but says the
 * bound, in any language.
 */
function boundOf({ code, message, detail }: Error & { code: string; detail?: string }): Finder {
  if (code === '22001') {
    const most = Number(/\((\d+)\)/.exec(message)?.[1]);
    return (value) =>
      typeof value === 'string' && [...value].length > most ? `must not have more than ${most} characters` : undefined;
  }
  const [, scale, , digits] = (code === '22003' && detail?.match(/-?\d+/g)?.map(Number)) || [];
  if (scale === undefined || digits === undefined) return () => undefined;
  return (value) => {
    const isNumber = typeof value === 'number' || typeof value === 'bigint' || typeof value === 'string';
    const rounded = isNumber ? Math.abs(Number(value)) + 10 ** -scale / 2 : 0;
    return rounded >= 10 ** digits ? `must have at most ${digits} digits before the decimal point` : undefined;
  };
}

/** NaN and invalid dates are what a conversion, such as `@Type(() => Date)`, has made of something else. */
function faultOf(value: unknown): string | undefined {
  if (typeof value === 'string') return UNSTORABLE.test(value) ? TEXT : undefined;
  if (value instanceof Date) return value.getTime() >= FIRST_TIME ? undefined : DATE;
  return typeof value === 'number' && !Number.isFinite(value) ? NUMBER : undefined;
}

function find(value: unknown, path: string, finder: Finder, seen: Set<object>): Fault | undefined {
  if (typeof value !== 'object' || value === null || value instanceof Date) {
    const clause = finder(value);
    return clause === undefined ? undefined : storable(path, `${path || 'the input'} ${clause}`);
  }
  if (seen.has(value) || ArrayBuffer.isView(value)) return undefined;
  seen.add(value);
  for (const [name, member] of Object.entries(withMembers(value))) {
    if (UNSTORABLE.test(name)) return storable(path, `the names of members of ${path || 'the body'} ${TEXT}`);
    const fault = find(member, path === '' ? name : `${path}.${name}`, finder, seen);
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
