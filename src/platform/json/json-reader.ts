import { ApiError } from '../errors/api-error.js';
import { MALFORMED_JSON } from '../errors/error-catalogue.js';
import { readNumeral } from './numerals.js';
import { countCharacters } from './text.js';

/** The result of {@link readJson}. An integer is a bigint if a double could not hold it exactly. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject;

/** An object without prototype: a member that was not sent is undefined, whatever its name. */
export interface JsonObject {
  [member: string]: JsonValue;
}

/** Deepest nesting of arrays and objects; a deeper text is malformed. */
export const MAX_JSON_DEPTH = 32;

/** Largest number of values in one text, whatever their names; a text with more is malformed. */
export const MAX_JSON_VALUES = 8_000;

/** A byte order mark is kept, so that the reader sees and refuses it (RFC 8259, section 8.1). */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a JSON text strictly by RFC 8259, keeps integers exact, and takes time linear in the length of the text.
 *
 * - The bytes must be UTF-8 without a byte order mark, and contain one value with only white space around it.
 * - A member named twice in one object is refused, also when its name is escaped differently or its value the same.
 * - Objects have no prototype, so `__proto__` and `constructor` are members like any other.
 * - Numbers are read by the rules of `readNumeral`.
 * - Strings may hold U+0000 and unpaired surrogates, if escaped: see `isStorableText`.
 *
 * @throws ApiError `malformed_json`. The message names the fault and its position, in characters from 1, and does not repeat
 *   the input.
 */
export function readJson(bytes: Buffer): JsonValue {
  return new JsonReader(decode(bytes)).read();
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

function decode(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new ApiError(MALFORMED_JSON, 'The body is not valid JSON: it is not UTF-8.');
  }
}

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
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const BYTE_ORDER_MARK = 0xfeff;

/** Integers of at most this many characters are safe (below 2^53). */
const MAX_SAFE_DIGITS = 15;

/** Strings of longer texts are copied: as a slice, a string would keep the whole text in memory. */
const MAX_SLICED_TEXT = 1_024;

/** Reads one text in one pass. `at` is the index of the next character; after the end, charCodeAt returns NaN. */
class JsonReader {
  private at = 0;
  private values = 0;

  constructor(
    private readonly text: string,
    private readonly maxValues = MAX_JSON_VALUES,
  ) {}

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

  /** Reads a value and the white space around it. `depth` is the nesting of the value if it is an array or object. */
  private value(depth: number): JsonValue {
    if (++this.values > this.maxValues) {
      throw this.fault(`it holds more than ${this.maxValues} values`);
    }
    const code = this.skipSpace();
    let value: JsonValue;
    if (code === OPEN_BRACE) {
      value = this.object(depth);
    } else if (code === OPEN_BRACKET) {
      value = this.array(depth);
    } else {
      value = this.scalar(code);
    }
    this.skipSpace();
    return value;
  }

  private object(depth: number): JsonObject {
    const object = Object.create(null) as JsonObject;
    for (let more = this.begins(CLOSE_BRACE, depth); more; more = this.continues(CLOSE_BRACE)) {
      const start = this.at;
      const name = this.name();
      if (object[name] !== undefined) {
        this.at = start;
        throw this.fault('a member is named twice');
      }
      object[name] = this.value(depth + 1);
    }
    return object;
  }

  private array(depth: number): JsonValue[] {
    const array: JsonValue[] = [];
    for (let more = this.begins(CLOSE_BRACKET, depth); more; more = this.continues(CLOSE_BRACKET)) {
      array.push(this.value(depth + 1));
    }
    return array;
  }

  private scalar(code: number): null | boolean | number | bigint | string {
    switch (code) {
      case QUOTE:
        return this.string();
      case SMALL_T:
        this.skipWord('true');
        return true;
      case SMALL_F:
        this.skipWord('false');
        return false;
      case SMALL_N:
        this.skipWord('null');
        return null;
      default:
        return this.number();
    }
  }

  private string(isCopied = this.text.length > MAX_SLICED_TEXT): string {
    const start = this.at;
    const isEscaped = this.skipString();
    if (!isEscaped && !isCopied) return this.text.slice(start + 1, this.at - 1);
    try {
      // Makes a copy, not a slice.
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      this.at = start;
      throw this.fault('a string has an invalid escape sequence');
    }
  }

  private number(): number | bigint {
    const start = this.at;
    const isInteger = this.skipNumber();
    const token = this.text.slice(start, this.at);
    return isInteger && token.length <= MAX_SAFE_DIGITS ? Number(token) : readNumeral(token);
  }

  private name(): string {
    if (this.text.charCodeAt(this.at) !== QUOTE) {
      throw this.expected('a member name');
    }
    // V8 copies names itself.
    const name = this.string(false);
    if (this.skipSpace() !== COLON) {
      throw this.expected("':'");
    }
    this.at++;
    return name;
  }

  /** Enters an array or object. If it is empty, reads its end and returns false. */
  private begins(close: number, depth: number): boolean {
    if (depth > MAX_JSON_DEPTH) {
      throw this.fault(`it nests deeper than ${MAX_JSON_DEPTH} levels`);
    }
    this.at++;
    if (this.skipSpace() !== close) return true;
    this.at++;
    return false;
  }

  /** Goes to the next item or member. At the end of the array or object, reads the end and returns false. */
  private continues(close: number): boolean {
    const code = this.text.charCodeAt(this.at);
    if (code !== COMMA && code !== close) {
      throw this.expected(close === CLOSE_BRACE ? "',' or '}'" : "',' or ']'");
    }
    this.at++;
    if (code === close) return false;
    this.skipSpace();
    return true;
  }

  /** Returns whether the string has escape sequences. */
  private skipString(): boolean {
    const { text } = this;
    let isEscaped = false;
    this.at++;
    for (;;) {
      const code = text.charCodeAt(this.at);
      if (code === QUOTE) {
        this.at++;
        return isEscaped;
      }
      if (code === BACKSLASH) {
        isEscaped = true;
        this.at += 2;
      } else if (code >= SPACE) {
        this.at++;
      } else if (this.at < text.length) {
        throw this.fault('a control character in a string is not escaped');
      } else {
        throw this.fault('a string has no end');
      }
    }
  }

  private skipWord(word: string): void {
    if (!this.text.startsWith(word, this.at)) {
      throw this.expected('a value');
    }
    this.at += word.length;
  }

  /** Returns whether the number has neither a fraction nor an exponent. */
  private skipNumber(): boolean {
    const { text } = this;
    const first = text.charCodeAt(this.at);
    if (first === MINUS) {
      this.at++;
    } else if (!isDigit(first)) {
      throw this.expected('a value');
    }
    if (text.charCodeAt(this.at) === ZERO) {
      this.at++;
    } else {
      this.skipDigits();
    }
    let isInteger = true;
    if (text.charCodeAt(this.at) === POINT) {
      isInteger = false;
      this.at++;
      this.skipDigits();
    }
    const mark = text.charCodeAt(this.at);
    if (mark === SMALL_E || mark === CAPITAL_E) {
      isInteger = false;
      const sign = text.charCodeAt(++this.at);
      if (sign === PLUS || sign === MINUS) {
        this.at++;
      }
      this.skipDigits();
    }
    return isInteger;
  }

  /** Skips one or more digits. */
  private skipDigits(): void {
    if (!isDigit(this.text.charCodeAt(this.at))) {
      throw this.expected('a digit');
    }
    do {
      this.at++;
    } while (isDigit(this.text.charCodeAt(this.at)));
  }

  /** Goes to the next character that is not white space, and returns its code. */
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

  /** The message counts characters, not UTF-16 units, so that an emoji is one. */
  private fault(what: string): ApiError {
    const character = countCharacters(this.text, this.at) + 1;
    return new ApiError(MALFORMED_JSON, `The body is not valid JSON: ${what} (character ${character}).`);
  }
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
