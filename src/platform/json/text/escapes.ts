const SMALL_U = 0x75;

/** The unit for each character after a backslash, by the character's code; 0 if the escape sequence is invalid. */
const SHORT_ESCAPES = shortEscapes({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' });

/** The UTF-16 unit of the escape sequence at an index; -1 if the sequence is invalid. */
export function unescapedUnit(text: string, backslash: number): number {
  const code = text.charCodeAt(backslash + 1);
  if (code !== SMALL_U) {
    return SHORT_ESCAPES[code] || -1;
  }
  let unit = 0;
  for (let at = backslash + 2; at < backslash + 6; at++) {
    const digit = hexadecimalDigit(text.charCodeAt(at));
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/** Length of a valid escape sequence in UTF-16 units. */
export function escapeLength(text: string, backslash: number): number {
  return text.charCodeAt(backslash + 1) === SMALL_U ? 6 : 2;
}

function hexadecimalDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x66 ? small - 0x61 + 10 : -1;
}

function shortEscapes(escapes: Readonly<Record<string, string>>): Uint8Array {
  const units = new Uint8Array(0x80);
  for (const [character, escaped] of Object.entries(escapes)) {
    units[character.charCodeAt(0)] = escaped.charCodeAt(0);
  }
  return units;
}
