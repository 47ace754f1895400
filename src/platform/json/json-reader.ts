import { ApiError } from '../errors/api-error.js';
import { MALFORMED_JSON } from '../errors/error-catalogue.js';

/** What {@link readJson} gives. A number is a bigint where a double could not hold it exactly. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;

/** An object without prototype: a member that was not sent is undefined, whatever its name. */
export interface JsonObject {
  [member: string]: JsonValue;
}

/** How many arrays and objects may lie within each other; one more is malformed. */
export const MAX_JSON_DEPTH = 32;

/** Integers with more decimal digits are read as Infinity: no integer type the service stores comes near. */
const MAX_INTEGER_DIGITS = 40;

/**
 * Reads a JSON text strictly by RFC 8259 and without changing a number on the way, in time linear in its length.
 *
 * - The bytes must be UTF-8 without a byte order mark, and one value with nothing but white space around it.
 * - A member named twice in one object is refused, also when its name is escaped differently or its value the same.
 * - Objects have no prototype, so `__proto__` and `constructor` are members like any other.
 * - An integer, however it is spelled (`100`, `1e2`, `100.0`, `-0`), is a `number` if that is safe (up to 2^53 - 1), else
 *   a `bigint`, else (more than 40 digits) Infinity or -Infinity.
 * - Another number is the nearest double; NaN if that double is an integer, which the number sent was not.
 * - Strings may hold U+0000 and unpaired surrogates, if escaped: see {@link isStorableText}.
 *
 * @throws ApiError `malformed_json`. The message says what is wrong and at which character, counted from 1, and repeats
 * nothing of the input.
 */
export function readJson(bytes: Buffer): JsonValue {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    const replaced = bytes.toString('utf8');
    throw malformed('it is not UTF-8', replaced, firstReplacement(bytes, replaced));
  }
  return new JsonReader(text).read();
}

/** Whether PostgreSQL can store a text as it is: no U+0000 and no unpaired surrogate. */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
}

/** A byte order mark is kept, so that the reader sees and refuses it (RFC 8259, section 8.1). */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const CAPITAL_E = 0x45;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const SMALL_E = 0x65;
const SMALL_F = 0x66;
const SMALL_N = 0x6e;
const SMALL_T = 0x74;
const SMALL_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const BYTE_ORDER_MARK = 0xfeff;

/** What may follow a backslash, `u` apart. */
const ESCAPES = new Map([
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
  [0x2f, '/'],
  [0x62, '\b'],
  [SMALL_F, '\f'],
  [SMALL_N, '\n'],
  [0x72, '\r'],
  [SMALL_T, '\t'],
]);

/** One pass over one text. `at` is the next character not yet read; charCodeAt gives NaN behind the end. */
class JsonReader {
  private at = 0;

  constructor(private readonly text: string) {}

  read(): JsonValue {
    if (this.text.charCodeAt(0) === BYTE_ORDER_MARK) {
      throw this.fault('it starts with a byte order mark');
    }
    const value = this.value(1);
    if (this.at < this.text.length) {
      throw this.fault('the value is followed by something else');
    }
    return value;
  }

  /** A value and the white space around it. `depth` is the nesting it would have as an array or object. */
  private value(depth: number): JsonValue {
    const value = this.bareValue(this.skipSpace(), depth);
    this.skipSpace();
    return value;
  }

  private bareValue(code: number, depth: number): JsonValue {
    switch (code) {
      case QUOTE:
        return this.string();
      case OPEN_BRACE:
        return this.object(depth);
      case OPEN_BRACKET:
        return this.array(depth);
      case SMALL_T:
        return this.literal('true', true);
      case SMALL_F:
        return this.literal('false', false);
      case SMALL_N:
        return this.literal('null', null);
      default:
        if (code === MINUS || isDigit(code)) {
          return this.number();
        }
        throw this.expected('a value');
    }
  }

  private object(depth: number): JsonObject {
    this.enter(depth);
    const object = Object.create(null) as JsonObject;
    let code = this.skipSpace();
    if (code === CLOSE_BRACE) {
      this.at++;
      return object;
    }
    for (;;) {
      if (code !== QUOTE) {
        throw this.expected('a member name');
      }
      const start = this.at;
      const name = this.string();
      if (object[name] !== undefined) {
        this.at = start;
        throw this.fault('a member is named twice');
      }
      if (this.skipSpace() !== COLON) {
        throw this.expected("':'");
      }
      this.at++;
      object[name] = this.value(depth + 1);
      code = this.text.charCodeAt(this.at);
      if (code === CLOSE_BRACE) {
        this.at++;
        return object;
      }
      if (code !== COMMA) {
        throw this.expected("',' or '}'");
      }
      this.at++;
      code = this.skipSpace();
    }
  }

  private array(depth: number): JsonValue[] {
    this.enter(depth);
    const array: JsonValue[] = [];
    if (this.skipSpace() === CLOSE_BRACKET) {
      this.at++;
      return array;
    }
    for (;;) {
      array.push(this.value(depth + 1));
      const code = this.text.charCodeAt(this.at);
      if (code !== COMMA && code !== CLOSE_BRACKET) {
        throw this.expected("',' or ']'");
      }
      this.at++;
      if (code === CLOSE_BRACKET) {
        return array;
      }
    }
  }

  private enter(depth: number): void {
    if (depth > MAX_JSON_DEPTH) {
      throw this.fault(`it nests deeper than ${MAX_JSON_DEPTH} levels`);
    }
    this.at++;
  }

  private literal<T extends boolean | null>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) {
      throw this.expected('a value');
    }
    this.at += word.length;
    return value;
  }

  private string(): string {
    const text = this.text;
    let start = ++this.at;
    let result = '';
    for (;;) {
      const code = text.charCodeAt(this.at);
      if (code === QUOTE) {
        const rest = text.slice(start, this.at++);
        return result === '' ? rest : result + rest;
      }
      if (code === BACKSLASH) {
        result += text.slice(start, this.at) + this.escape();
        start = this.at;
      } else if (code >= SPACE) {
        this.at++;
      } else if (this.at < text.length) {
        throw this.fault('a control character in a string is not escaped');
      } else {
        throw this.fault('a string has no end');
      }
    }
  }

  private escape(): string {
    const code = this.text.charCodeAt(this.at + 1);
    const character = ESCAPES.get(code);
    if (character !== undefined) {
      this.at += 2;
      return character;
    }
    const digits = this.text.slice(this.at + 2, this.at + 6);
    if (code !== SMALL_U || !/^[0-9A-Fa-f]{4}$/.test(digits)) {
      throw this.fault('a string has an invalid escape sequence');
    }
    this.at += 6;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  private number(): number | bigint {
    const text = this.text;
    const start = this.at;
    const negative = text.charCodeAt(start) === MINUS;
    if (negative) {
      this.at++;
    }
    const integerStart = this.at;
    if (text.charCodeAt(integerStart) === ZERO) {
      this.at++;
    } else {
      this.digits();
    }
    const integerEnd = this.at;
    const next = text.charCodeAt(integerEnd);
    if (next !== POINT && next !== SMALL_E && next !== CAPITAL_E && integerEnd - integerStart <= 15) {
      return Number(text.slice(start, integerEnd));
    }

    let fraction = '';
    if (next === POINT) {
      this.at++;
      const fractionStart = this.at;
      this.digits();
      fraction = text.slice(fractionStart, this.at);
    }
    let exponent = 0;
    const mark = text.charCodeAt(this.at);
    if (mark === SMALL_E || mark === CAPITAL_E) {
      this.at++;
      const exponentStart = this.at;
      const sign = text.charCodeAt(exponentStart);
      if (sign === PLUS || sign === MINUS) {
        this.at++;
      }
      this.digits();
      exponent = Number(text.slice(exponentStart, this.at));
    }
    const integer = text.slice(integerStart, integerEnd);
    return exactNumber(negative, integer, fraction, exponent) ?? nearestNumber(text.slice(start, this.at));
  }

  /** One digit or more. */
  private digits(): void {
    if (!isDigit(this.text.charCodeAt(this.at))) {
      throw this.expected('a digit');
    }
    do {
      this.at++;
    } while (isDigit(this.text.charCodeAt(this.at)));
  }

  /** Goes to the next character that is not white space, and gives its code. */
  private skipSpace(): number {
    let code = this.text.charCodeAt(this.at);
    while (code === SPACE || code === LINE_FEED || code === CARRIAGE_RETURN || code === TAB) {
      code = this.text.charCodeAt(++this.at);
    }
    return code;
  }

  private expected(what: string): ApiError {
    return this.fault(this.at < this.text.length ? `${what} is expected` : `it ends where ${what} is expected`);
  }

  private fault(what: string): ApiError {
    return malformed(what, this.text, this.at);
  }
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/**
 * The integer that `integer.fraction * 10^exponent` is, or undefined if it is none. Only the digits are looked at: the
 * exponent may be anything, Infinity too, and costs nothing.
 */
function exactNumber(
  negative: boolean,
  integer: string,
  fraction: string,
  exponent: number,
): number | bigint | undefined {
  const written = integer + fraction;
  let first = 0;
  while (written.charCodeAt(first) === ZERO) {
    first++;
  }
  if (first === written.length) {
    return negative ? -0 : 0;
  }
  let end = written.length;
  while (written.charCodeAt(end - 1) === ZERO) {
    end--;
  }
  const zeros = exponent - fraction.length + (written.length - end);
  if (zeros < 0) {
    return undefined;
  }
  if (end - first + zeros > MAX_INTEGER_DIGITS) {
    return negative ? -Infinity : Infinity;
  }
  const digits = (negative ? '-' : '') + written.slice(first, end) + '0'.repeat(zeros);
  // Rounding never carries an unsafe integer into the safe range, so this test is exact.
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

/** The double nearest to a number that is not an integer. */
function nearestNumber(token: string): number {
  const value = Number(token);
  return Number.isInteger(value) ? NaN : value;
}

/** Where the decoder put the first U+FFFD that the bytes do not hold themselves. */
function firstReplacement(bytes: Buffer, replaced: string): number {
  const replacement = Buffer.from('\ufffd');
  let from = 0;
  let offset = 0;
  for (;;) {
    const at = replaced.indexOf('\ufffd', from);
    offset += Buffer.byteLength(replaced.slice(from, at));
    if (!bytes.subarray(offset, offset + replacement.length).equals(replacement)) {
      return at;
    }
    offset += replacement.length;
    from = at + 1;
  }
}

/** `at` is an index into the text; the message counts characters, so that an emoji is one. */
function malformed(what: string, text: string, at: number): ApiError {
  const character = Array.from(text.slice(0, at)).length + 1;
  return new ApiError(MALFORMED_JSON, `The body is not valid JSON: ${what} (character ${character}).`);
}
