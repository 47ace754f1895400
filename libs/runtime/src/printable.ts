/**
 * Characters that a terminal obeys, hides or reorders: control and format characters (ESC, C1, bidirectional controls, those
 * without width), line and paragraph separators, unpaired surrogates.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * Text of unknown origin for one line of a terminal: every unsafe character becomes the escape of JSON, such as `\u009b`, also
 * a line feed.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, escape);
}

/** As `printable`, but keeps line feeds. A JSON text keeps its value. */
export function printableLines(text: string): string {
  return text.replace(UNSAFE, (character) => (character === '\n' ? character : escape(character)));
}

function escape(character: string): string {
  return character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
