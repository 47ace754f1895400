import { ApiError, BODY_TOO_COMPLEX } from '#errors';

/** How much one JSON text may hold. */
export interface JsonLimits {
  /**
   * Largest number of values and member names together. An object and a number of more than 15 characters count twice, and another
   * number with an exponent three times: they cost more.
   */
  readonly values: number;
  /** Deepest nesting of arrays and objects. */
  readonly levels: number;
}

export const JSON_LIMITS: JsonLimits = { values: 11_000, levels: 32 };

/** Longest numeral without an exponent whose double is an integer only if the numeral is one. */
const PLAIN_LENGTH = 15;

/** Counts what bounds the cost of a text, which need not be JSON. @throws ApiError BODY_TOO_COMPLEX */
export function scan(text: string, { values, levels }: JsonLimits): { members: number; hasNumerals: boolean } {
  let [level, count, members] = [0, 0, 0];
  let hasNumerals = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 /* " */) {
      count++;
      at = endOfString(text, at) - 1;
    } else if ((code >= 0x30 && code <= 0x39) || code === 0x2d /* 0-9 - */) {
      const end = endOfNumeral(text, at);
      const isLong = !isPlain(text, at, end);
      count += !isLong ? 1 : end - at > PLAIN_LENGTH ? 2 : 3;
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
      const twice = 'objects and long numbers count twice, numbers with an exponent three times';
      throw new ApiError(BODY_TOO_COMPLEX, `The body has more than ${values} values and member names (${twice}).`);
    }
  }
  return { members, hasNumerals };
}

/** The place behind a numeral. */
export function endOfNumeral(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const code = text.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!isDigit && code !== 0x2e && code !== 0x2d && code !== 0x2b && code !== 0x65 && code !== 0x45) return at;
  }
}

/** Whether the double of a numeral is an integer only if the numeral is one. */
export function isPlain(text: string, start = 0, end = text.length): boolean {
  if (end - start > PLAIN_LENGTH) return false;
  // An exponent has an e or E.
  for (let at = start; at < end; at++) if (text.charCodeAt(at) > 0x39) return false;
  return true;
}

/** The place behind a string; that behind the text if the string has no end. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22 /* " */) return at + 1;
    if (code === 0x5c /* \\ */) at++;
  }
  return text.length;
}

/** Number of characters (Unicode code points); a surrogate pair is one character. */
export function countCharacters(text: string): number {
  return text.replace(/[\u{10000}-\u{10ffff}]/gu, '_').length;
}
