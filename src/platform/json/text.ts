/** Number of characters (Unicode code points) before the index `end`; a surrogate pair is one character. */
export function countCharacters(text: string, end = text.length): number {
  let count = 0;
  for (let index = 0; index < end; index++) {
    // The second half of a surrogate pair belongs to the character before it.
    const unit = text.charCodeAt(index);
    const isSecondHalf =
      unit >= 0xdc00 && unit <= 0xdfff && index > 0 && (text.charCodeAt(index - 1) & 0xfc00) === 0xd800;
    if (!isSecondHalf) count++;
  }
  return count;
}

/** Whether PostgreSQL can store a text unchanged: it has no U+0000 and no unpaired surrogate. */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && !/\p{Surrogate}/u.test(text);
}
