import { ApiError, BODY_TOO_COMPLEX, MALFORMED_JSON } from '#errors';
import { countCharacters } from './json-text.js';

/** How much one JSON text may hold. */
export interface JsonLimits {
  /**
   * Largest number of values and member names together. An object counts twice, and so does a number with an exponent or more
   * than 15 characters: they cost more.
   */
  readonly values: number;
  /** Deepest nesting of arrays and objects. */
  readonly levels: number;
}

export const JSON_LIMITS: JsonLimits = { values: 11_000, levels: 32 };

/** An object or array, with its members or items. */
type Holder = Record<string | number, unknown>;

/** Longest numeral without an exponent whose double is an integer only if the numeral is one. */
const PLAIN_LENGTH = 15;

/** A repeated name among more members is not searched for. */
const MAX_SEARCHED = 1_000;

/** Up to this length a loop finds the end of a string sooner than `indexOf`. */
const NEAR = 32;

/** A byte order mark is kept, so that it is refused (RFC 8259, section 8.1). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Makes the constructor of a derived class add its private fields to an object that exists. */
class Existing {
  constructor(object: object) {
    return object;
  }
}

/** The source texts of numbers, in a private field of their object or array: a WeakMap takes ten times as long. */
class Numerals extends Existing {
  readonly #numerals = new Map<string | number, string>();

  static of(holder: object): Map<string | number, string> | undefined {
    return #numerals in holder ? holder.#numerals : undefined;
  }
}

/**
 * The source text of a number of a body that {@link readJson} has read. Undefined if the double is exact, no integer, or larger
 * than any int64.
 */
export function numeralOf(holder: object, key: string | number): string | undefined {
  return Numerals.of(holder)?.get(key);
}

/**
 * Reads JSON (RFC 8259) as `JSON.parse` does, and keeps the text of numbers for {@link numeralOf}. The bytes must be UTF-8 without
 * a byte order mark. A member named twice is refused, also if its name is escaped differently or its value the same.
 *
 * @throws ApiError MALFORMED_JSON that names the fault without repeating the input, BODY_TOO_COMPLEX that names the limit
 */
export function readJson(bytes: Buffer, limits = JSON_LIMITS): unknown {
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw malformed('it is not UTF-8');
  }
  if (text.startsWith('\ufeff')) throw malformed('it starts with a byte order mark');
  // First, so that nothing costly is made of the text.
  const { members, hasNumerals } = measure(text, limits);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw syntaxFault(text, error as Error);
  }
  // JSON.parse keeps the last of two members with one name.
  if (countMembers(value) < members) {
    if (members <= MAX_SEARCHED) walk(text, value);
    throw malformed('a member is named twice');
  }
  if (hasNumerals) walk(text, value, keep);
  return value;
}

/** Reads JSON that the service itself has written: an integer that a double cannot hold is a bigint. */
export function readOwnJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (/[0-9]{16}/.test(text)) {
    walk(text, value, (holder, key, numeral) => {
      if (!Number.isSafeInteger(holder[key]) && /^-?[0-9]+$/.test(numeral)) holder[key] = BigInt(numeral);
    });
  }
  return value;
}

/** Counts what bounds the cost of a text, which need not be JSON. */
function measure(text: string, { values, levels }: JsonLimits): { members: number; hasNumerals: boolean } {
  let level = 0;
  let count = 0;
  let members = 0;
  let hasNumerals = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 /* " */) {
      count++;
      at = endOfString(text, at) - 1;
    } else if ((code >= 0x30 && code <= 0x39) || code === 0x2d /* 0-9 - */) {
      const end = endOfNumeral(text, at);
      const isLong = !isPlain(text, at, end);
      count += isLong ? 2 : 1;
      hasNumerals ||= isLong;
      at = end - 1;
    } else if (code === 0x3a /* : */) {
      members++;
    } else if (code === 0x7b || code === 0x5b /* { [ */) {
      count += code === 0x7b ? 2 : 1;
      if (++level > levels) throw new ApiError(BODY_TOO_COMPLEX, `The body nests deeper than ${levels} levels.`);
    } else if (code === 0x7d || code === 0x5d /* } ] */) {
      level--;
    } else if (code === 0x74 || code === 0x66 || code === 0x6e /* true, false, null */) {
      count++;
      at += code === 0x66 ? 4 : 3;
    }
    if (count > values) {
      const what = 'values and member names (objects and long numbers count twice)';
      throw new ApiError(BODY_TOO_COMPLEX, `The body has more than ${values} ${what}.`);
    }
  }
  return { members, hasNumerals };
}

function endOfNumeral(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const code = text.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!isDigit && code !== 0x2e && code !== 0x2d && code !== 0x2b && code !== 0x65 && code !== 0x45) return at;
  }
}

/** Whether the double of a numeral is an integer only if the numeral is one. */
function isPlain(text: string, start: number, end: number): boolean {
  if (end - start > PLAIN_LENGTH) return false;
  // An exponent has an e or E.
  for (let at = start; at < end; at++) if (text.charCodeAt(at) > 0x39) return false;
  return true;
}

/** The place behind a string; behind the text if it has no end. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (const near = at + NEAR; at < near; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 /* " */) return at + 1;
    if (code === 0x5c /* \ */) at++;
  }
  for (let end = text.indexOf('"', at); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (before > at && text.charCodeAt(before - 1) === 0x5c) before--;
    if ((end - before) % 2 === 0) return end + 1;
  }
  return text.length;
}

function countMembers(value: unknown): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') count += countMembers(item);
    return count;
  }
  // Objects of JSON.parse inherit nothing that is enumerable.
  for (const name in value as Holder | null) {
    count++;
    const member = (value as Holder)[name];
    if (typeof member === 'object') count += countMembers(member);
  }
  return count;
}

type OnNumber = (holder: Holder, key: string | number, numeral: string) => void;

/**
 * Walks through a text and what JSON.parse has made of it.
 *
 * @param onNumber gets the numerals; without it, a member that is named twice is an error
 */
function walk(text: string, parsed: unknown, onNumber?: OnNumber): void {
  let at = 0;
  const next = (): string | undefined => {
    while (' \n\r\t'.includes(text[at] ?? '_')) at++;
    return text[at];
  };
  const nameOf = (names: Set<string> | undefined): string => {
    const start = at;
    at = endOfString(text, start);
    const source = text.slice(start, at);
    const name = source.includes('\\') ? (JSON.parse(source) as string) : source.slice(1, -1);
    // With a quote, because V8's hash of a text of digits can be steered.
    if (names && names.size === names.add(`"${name}`).size) throw malformed('a member is named twice', text, start);
    next();
    at++;
    return name;
  };
  const read = (value: unknown, holder?: Holder, key: string | number = ''): void => {
    const first = next();
    if (first === '{' || first === '[') {
      const names = onNumber ? undefined : new Set<string>();
      at++;
      for (let index = 0; next() !== '}' && text[at] !== ']'; index++) {
        if (text[at] === ',') at++;
        const inner = first === '[' ? index : (next(), nameOf(names));
        read((value as Holder)[inner], value as Holder, inner);
      }
      at++;
    } else if (first === '"') {
      at = endOfString(text, at);
    } else if (typeof value === 'number') {
      const start = at;
      at = endOfNumeral(text, start);
      if (holder) onNumber?.(holder, key, text.slice(start, at));
    } else {
      at += value === false ? 5 : 4;
    }
  };
  read(parsed);
}

function keep(holder: Holder, key: string | number, numeral: string): void {
  const value = holder[key] as number;
  if (isPlain(numeral, 0, numeral.length) || !Number.isInteger(value) || Math.abs(value) > 2 ** 63) return;
  Numerals.of(Numerals.of(holder) ? holder : new Numerals(holder))?.set(key, numeral);
}

/** V8 says most faults with their position, and quotes the text at the others. */
function syntaxFault(text: string, { message }: Error): ApiError {
  const [, fault = 'Unexpected character', position] =
    /^(.*?)(?:, .*is not valid JSON|(?: in JSON)? at position (\d+).*)?$/su.exec(message) ?? [];
  return malformed(fault, text, position === undefined ? undefined : Number(position));
}

function malformed(fault: string, text = '', at?: number): ApiError {
  const place = at === undefined ? '' : ` (character ${countCharacters(text.slice(0, at)) + 1})`;
  return new ApiError(MALFORMED_JSON, `The body is not valid JSON: ${fault}${place}.`);
}
