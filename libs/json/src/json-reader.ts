import { ApiError, MALFORMED_JSON } from '#errors';

/** The result of {@link readJson}. An integer is a bigint if a double could not hold it exactly. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;

/** An object without prototype: a member that was not sent is undefined, whatever its name. */
export interface JsonObject {
  [member: string]: JsonValue;
}

/** Deepest nesting of arrays and objects; a deeper text is malformed. */
const MAX_JSON_DEPTH = 32;

/** Largest number of values in one text, whatever their names; a text with more is malformed. */
const MAX_JSON_VALUES = 8_000;

/** A byte order mark is kept, so that the reader sees and refuses it (RFC 8259, section 8.1). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a JSON text strictly by RFC 8259, keeps integers exact, and takes time linear in the length of the text.
 *
 * - The bytes must be UTF-8 without a byte order mark, and contain one value with only white space around it.
 * - A member named twice in one object is refused, also when its name is escaped differently or its value the same.
 * - Objects have no prototype, so `__proto__` and `constructor` are members like any other.
 * - Numbers are read by the rules of `readNumber`.
 * - Strings may hold U+0000 and unpaired surrogates, if escaped: `@TextProperty` refuses them.
 *
 * @throws ApiError `malformed_json`. The message names the fault and its position, in characters from 1, and does not repeat
 *   the input.
 */
export function readJson(bytes: Buffer): JsonValue {
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw new ApiError(MALFORMED_JSON, 'The body is not valid JSON: it is not UTF-8.');
  }
  return new JsonReader(text).read();
}

/** Matches numbers with so many digits that a double may lose some. */
const MANY_DIGITS = /[0-9]{16}/;

/**
 * Reads a JSON text that the service itself has written, without the limits of {@link readJson}. Integers that a number
 * cannot hold are bigints.
 */
export function readOwnJson(text: string): JsonValue {
  return MANY_DIGITS.test(text) ? new JsonReader(text, Infinity).read() : (JSON.parse(text) as JsonValue);
}

const BYTE_ORDER_MARK = '\ufeff';
const WHITE_SPACE = ' \n\r\t';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;

/** A number: its sign, its digits before and behind the point, and its exponent (RFC 8259, section 6). */
const NUMBER = /(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/y;

/** Decimal digits that a double holds exactly. */
const EXACT_DIGITS = 15;

/** Integers with more decimal digits are read as Infinity: no integer type of the service is that large. */
const MAX_INTEGER_DIGITS = 40;

class JsonReader {
  private at = 0;
  private values = 0;

  constructor(
    private readonly text: string,
    private readonly maxValues = MAX_JSON_VALUES,
  ) {}

  read(): JsonValue {
    if (this.text.startsWith(BYTE_ORDER_MARK)) throw this.fault('it starts with a byte order mark');
    const value = this.value(1);
    if (this.at < this.text.length) throw this.fault('the value is followed by something else');
    return value;
  }

  /** Reads a value and the white space around it. `depth` is the nesting of the value if it is an array or object. */
  private value(depth: number): JsonValue {
    if (++this.values > this.maxValues) throw this.fault(`it holds more than ${this.maxValues} values`);
    const value = this.bareValue(this.skipSpace(), depth);
    this.skipSpace();
    return value;
  }

  private bareValue(first: string | undefined, depth: number): JsonValue {
    switch (first) {
      case '{':
        return this.object(depth);
      case '[':
        return this.array(depth);
      case '"':
        return this.string();
      case 't':
        return this.word('true', true);
      case 'f':
        return this.word('false', false);
      case 'n':
        return this.word('null', null);
      default:
        return this.number();
    }
  }

  private object(depth: number): JsonObject {
    const object = Object.create(null) as JsonObject;
    for (let more = this.begins('}', depth); more; more = this.continues('}')) {
      const start = this.at;
      const name = this.name();
      if (object[name] !== undefined) throw this.fault('a member is named twice', start);
      object[name] = this.value(depth + 1);
    }
    return object;
  }

  private array(depth: number): JsonValue[] {
    const array: JsonValue[] = [];
    for (let more = this.begins(']', depth); more; more = this.continues(']')) array.push(this.value(depth + 1));
    return array;
  }

  private string(): string {
    const start = this.at;
    if (!this.skipString()) return this.text.slice(start + 1, this.at - 1);
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      throw this.fault('a string has an invalid escape sequence', start);
    }
  }

  private number(): number | bigint {
    NUMBER.lastIndex = this.at;
    if (!NUMBER.test(this.text)) throw this.expected('a value');
    const token = this.text.slice(this.at, NUMBER.lastIndex);
    this.at = NUMBER.lastIndex;
    return readNumber(token);
  }

  private word<Value>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.at)) throw this.expected('a value');
    this.at += word.length;
    return value;
  }

  private name(): string {
    if (this.text[this.at] !== '"') throw this.expected('a member name');
    const name = this.string();
    if (this.skipSpace() !== ':') throw this.expected("':'");
    this.at++;
    return name;
  }

  /** Enters an array or object. If it is empty, reads its end and returns false. */
  private begins(close: string, depth: number): boolean {
    if (depth > MAX_JSON_DEPTH) throw this.fault(`it nests deeper than ${MAX_JSON_DEPTH} levels`);
    this.at++;
    if (this.skipSpace() !== close) return true;
    this.at++;
    return false;
  }

  /** Goes to the next item or member. At the end of the array or object, reads the end and returns false. */
  private continues(close: string): boolean {
    const next = this.text[this.at];
    if (next !== ',' && next !== close) throw this.expected(`',' or '${close}'`);
    this.at++;
    if (next === close) return false;
    this.skipSpace();
    return true;
  }

  private skipString(): boolean {
    let isEscaped = false;
    for (;;) {
      const code = this.text.charCodeAt(++this.at);
      if (code === QUOTE) {
        this.at++;
        return isEscaped;
      }
      if (code === BACKSLASH) {
        isEscaped = true;
        this.at++;
      } else if (!(code >= SPACE)) {
        // NaN after the end of the text.
        throw this.fault(
          this.at < this.text.length ? 'a control character in a string is not escaped' : 'a string has no end',
        );
      }
    }
  }

  /** Goes to the next character that is not white space, and returns it; undefined at the end. */
  private skipSpace(): string | undefined {
    // The comparison of codes is fast and enough for most characters.
    while (this.text.charCodeAt(this.at) <= SPACE && WHITE_SPACE.includes(this.text[this.at] as string)) this.at++;
    return this.text[this.at];
  }

  private expected(what: string): ApiError {
    return this.fault(this.at < this.text.length ? `${what} is expected` : `it ends where ${what} is expected`);
  }

  /** The message counts characters, not UTF-16 units, so that an emoji is one. */
  private fault(what: string, at = this.at): ApiError {
    const character = countCharacters(this.text.slice(0, at)) + 1;
    return new ApiError(MALFORMED_JSON, `The body is not valid JSON: ${what} (character ${character}).`);
  }
}

/**
 * The value of a JSON number. An integer, however it is spelled (`100`, `1e2`, `100.0`), is exact: a `number` if that is safe
 * (up to 2^53 - 1), else a `bigint`, else (more than 40 digits) Infinity or -Infinity. A number with a fraction is the nearest
 * double, or NaN if that double is an integer, so that it cannot pass as one. The time is linear in the length of the token,
 * whatever its exponent.
 */
function readNumber(token: string): number | bigint {
  const value = Number(token);
  // The double nearest to an integer is an integer, so this token is none.
  if (Number.isFinite(value) && !Number.isInteger(value)) return value;
  // Only 0 may be a rounded tiny number, if it has an exponent.
  if (token.length <= EXACT_DIGITS && Number.isSafeInteger(value) && (value !== 0 || token === '0')) return value;
  NUMBER.lastIndex = 0;
  const [, sign = '', integer = '', fraction = '', exponent = '0'] = NUMBER.exec(token) ?? [];
  const digits = integer + fraction;
  const first = digits.search(/[1-9]|$/);
  if (first === digits.length) return value;
  // Where the decimal point stands without the exponent.
  const point = integer.length + Number(exponent);
  if (/[1-9]/.test(digits.slice(Math.max(first, point)))) return NaN;
  if (point - first > MAX_INTEGER_DIGITS) return sign === '-' ? -Infinity : Infinity;
  const exact = BigInt(sign + digits.slice(first, point).padEnd(point - first, '0'));
  // Rounding never carries an unsafe integer into the safe range.
  return Number.isSafeInteger(Number(exact)) ? Number(exact) : exact;
}

/** Number of characters (Unicode code points); a surrogate pair is one character. */
export function countCharacters(text: string): number {
  return text.replace(/[\u{10000}-\u{10ffff}]/gu, '_').length;
}
