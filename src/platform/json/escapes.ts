const BACKSLASH = 0x5c;
const SMALL_U = 0x75;

/** UTF-16 units that follow a backslash, and what they stand for (RFC 8259, section 7). */
const SHORT_ESCAPES: Readonly<Record<number, number>> = {
  0x22: 0x22,
  [BACKSLASH]: BACKSLASH,
  0x2f: 0x2f,
  0x62: 0x08,
  0x66: 0x0c,
  0x6e: 0x0a,
  0x72: 0x0d,
  0x74: 0x09,
};

/** The UTF-16 unit that the escape sequence at an index stands for; -1 when the sequence is invalid. */
export function unescapedUnit(text: string, backslash: number): number {
  const code = text.charCodeAt(backslash + 1);
  if (code !== SMALL_U) {
    return SHORT_ESCAPES[code] ?? -1;
  }
  let unit = 0;
  for (let at = backslash + 2; at < backslash + 6; at++) {
    const digit = hexadecimalDigit(text.charCodeAt(at));
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/** UTF-16 units of a valid escape sequence. */
export function escapeLength(text: string, backslash: number): number {
  return text.charCodeAt(backslash + 1) === SMALL_U ? 6 : 2;
}

function hexadecimalDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x66 ? small - 0x61 + 10 : -1;
}
