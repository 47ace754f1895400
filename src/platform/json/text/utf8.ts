const REPLACEMENT = 0xfffd;
const REPLACEMENT_BYTES = 3;

/** A byte order mark is kept, so that the JSON reader sees and refuses it (RFC 8259, section 8.1). */
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of UTF-8 bytes.
 *
 * @param onFault makes the error for bytes that are not UTF-8, from the text with U+FFFD in place of each fault, and from
 *   the index of the first fault
 */
export function decodeUtf8(bytes: Buffer, onFault: (replaced: string, at: number) => Error): string {
  try {
    return strict.decode(bytes);
  } catch {
    const replaced = bytes.toString('utf8');
    throw onFault(replaced, firstReplacement(bytes, replaced));
  }
}

/** The index of the first U+FFFD that replaces a fault: the bytes may also contain U+FFFD itself. */
function firstReplacement(bytes: Buffer, replaced: string): number {
  let offset = 0;
  for (let at = 0; at < replaced.length; at++) {
    const unit = replaced.charCodeAt(at);
    if (unit === REPLACEMENT && !holdsReplacement(bytes, offset)) {
      return at;
    }
    offset += bytesOf(unit);
  }
  return replaced.length;
}

function holdsReplacement(bytes: Buffer, offset: number): boolean {
  return offset + REPLACEMENT_BYTES <= bytes.length && bytes.readUIntBE(offset, REPLACEMENT_BYTES) === 0xefbfbd;
}

/** Number of UTF-8 bytes of a UTF-16 unit. A surrogate pair has four bytes, counted as two for each half. */
function bytesOf(unit: number): number {
  if (unit < 0x80) return 1;
  return unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
}
