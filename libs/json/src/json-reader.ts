import { ApiError, MALFORMED_JSON } from '#errors';
import { declareJson } from './json-writer.js';
import { countCharacters, endOfNumeral, endOfString, isPlain, JSON_LIMITS, scan } from './json-scan.js';

/** A byte order mark is kept, so that it is refused (RFC 8259, section 8.1). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads JSON (RFC 8259) as `JSON.parse` does, and keeps the text of numbers for `numeralOf`. The bytes must be UTF-8 without
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
  if (text.charCodeAt(0) === 0xfeff) throw malformed('it starts with a byte order mark');
  // First, so that nothing costly is made of the text.
  const { members, hasNumerals } = scan(text, limits);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // V8 says most faults with their position, and quotes the text at the others.
    const [, fault = 'Unexpected character', position] =
      /^(.*?)(?:, .*is not valid JSON|(?: in JSON)? at position (\d+).*)?$/su.exec((error as Error).message) ?? [];
    throw malformed(fault, text, position === undefined ? undefined : Number(position));
  }
  // JSON.parse keeps the last of two members with one name: this walk finds the second, and throws.
  if (countMembers(value) < members) walk(text, value);
  if (hasNumerals) walk(text, value, keepNumeral);
  return value;
}

/**
 * Reads JSON that the service itself has written: an integer that a double cannot hold is a bigint. `JSON.stringify` takes the
 * result nevertheless.
 */
export function readOwnJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (/[0-9]{16}/.test(text)) {
    walk(text, value, (holder, key, numeral) => {
      if (!Number.isSafeInteger(holder[key]) && /^-?[0-9]+$/.test(numeral)) {
        holder[key] = BigInt(numeral);
        declareJson(holder);
      }
    });
  }
  return value;
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object') return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  // Faster than Object.keys; objects of JSON.parse inherit nothing that is enumerable.
  for (const name in value) count += 1 + countMembers((value as Holder)[name]);
  return count;
}

/** Gives `onNumber` the numerals of a text that JSON.parse has read; without it, a member that is named twice is an error. */
function walk(text: string, parsed: unknown, onNumber?: typeof keepNumeral): void {
  let at = 0;
  const next = (): string | undefined => {
    while (' \n\r\t'.includes(text[at] ?? '_')) at++;
    return text[at];
  };
  const nameOf = (names: Set<string>): string => {
    next();
    const start = at;
    at = endOfString(text, start);
    const source = text.slice(start, at);
    const name = source.includes('\\') ? (JSON.parse(source) as string) : source.slice(1, -1);
    // With a quote, because V8's hash of a text of digits can be steered.
    if (!onNumber && names.size === names.add(`"${name}`).size) throw malformed('a member is named twice', text, start);
    next();
    at++;
    return name;
  };
  const read = (value: unknown, holder?: Holder, key: string | number = ''): void => {
    const first = next();
    if (first === '{' || first === '[') {
      const names = new Set<string>();
      at++;
      for (let index = 0; next() !== '}' && text[at] !== ']'; index++) {
        if (text[at] === ',') at++;
        const inner = first === '[' ? index : nameOf(names);
        // Of two members with one name, the value is that of the last.
        read((value as Holder | undefined)?.[inner], value as Holder, inner);
      }
      at++;
    } else if (first === '"') {
      at = endOfString(text, at);
    } else if ((first as string) <= '9') {
      const start = at;
      at = endOfNumeral(text, start);
      if (holder) onNumber?.(holder, key, text.slice(start, at));
    } else {
      at += first === 'f' ? 5 : 4;
    }
  };
  read(parsed);
}

function malformed(fault: string, text = '', at?: number): ApiError {
  const place = at === undefined ? '' : ` (character ${countCharacters(text.slice(0, at)) + 1})`;
  return new ApiError(MALFORMED_JSON, `The body is not valid JSON: ${fault}${place}.`);
}

/** An object or array, with its members or items. */
type Holder = Record<string | number, unknown>;

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
 * The source text of a number of a body that `readJson` has read. Undefined if the double is exact, no integer, or larger
 * than any int64, or if code of a module has put another number in its place.
 */
export function numeralOf(holder: object, key: string | number): string | undefined {
  const numeral = Numerals.of(holder)?.get(key);
  return numeral !== undefined && Number(numeral) === (holder as Holder)[key] ? numeral : undefined;
}

/** Whether all source texts of an array belong to its items. They do not once code of a module has moved or removed some. */
export function hasOwnNumerals(array: readonly unknown[]): boolean {
  const numerals = Numerals.of(array) ?? new Map<number, string>();
  return [...numerals].every(([index, numeral]) => Number(numeral) === array[index as number]);
}

/** Keeps the source text of a number for {@link numeralOf}, if it is needed. */
function keepNumeral(holder: Holder, key: string | number, numeral: string): void {
  const value = holder[key] as number;
  if (isPlain(numeral) || !Number.isInteger(value) || Math.abs(value) > 2 ** 63) return;
  Numerals.of(Numerals.of(holder) ? holder : new Numerals(holder))?.set(key, numeral);
}
