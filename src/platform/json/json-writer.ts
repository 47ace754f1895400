/** Deepest nesting of arrays and objects; a cycle always exceeds it. */
export const MAX_WRITTEN_DEPTH = 100;

/**
 * The JSON text (RFC 8259) of a value, by the rules of `JSON.stringify` without indentation, except that a bigint is
 * written as a number with all its digits. So `toJSON` is honoured (dates), undefined, functions and symbols are left
 * out of objects and null in arrays, NaN and the infinities are null, and an unpaired surrogate is escaped.
 * Not supported: boxed primitives (`new Number(1)`), which are written as objects.
 *
 * @throws TypeError when the value nests deeper than {@link MAX_WRITTEN_DEPTH} or contains itself, or when it has no JSON
 * text at all, as undefined.
 */
export function writeJson(value: unknown): string {
  const text = write(value, '', 1);
  if (text === undefined) {
    throw new TypeError(`A value of type ${typeof value} cannot be written as JSON.`);
  }
  return text;
}

/**
 * @param key the parameter of `toJSON`
 * @param depth the nesting of the value if it is an array or object
 */
function write(value: unknown, key: string | number, depth: number): string | undefined {
  if (hasToJson(value)) {
    value = value.toJSON(String(key));
  }
  switch (typeof value) {
    case 'string':
      return writeString(value);
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null';
    case 'bigint':
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) {
        return 'null';
      }
      if (depth > MAX_WRITTEN_DEPTH) {
        throw new TypeError(`A value that nests deeper than ${MAX_WRITTEN_DEPTH} levels cannot be written as JSON.`);
      }
      return Array.isArray(value) ? writeArray(value, depth) : writeObject(value as Members, depth);
    default:
      return undefined;
  }
}

type Members = Record<string, unknown>;

function writeArray(array: readonly unknown[], depth: number): string {
  let text = '[';
  // By index, not by iterator: holes are null.
  for (let index = 0; index < array.length; index++) {
    text += (index === 0 ? '' : ',') + (write(array[index], index, depth + 1) ?? 'null');
  }
  return text + ']';
}

function writeObject(object: Members, depth: number): string {
  let text = '{';
  for (const name of Object.keys(object)) {
    const member = write(object[name], name, depth + 1);
    if (member !== undefined) {
      text += `${text === '{' ? '' : ','}${writeString(name)}:${member}`;
    }
  }
  return text + '}';
}

function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  return typeof value === 'object' && value !== null && typeof (value as Members)['toJSON'] === 'function';
}

/** The JSON text of a string. For short texts, checking the characters is cheaper than calling JSON.stringify. */
export function writeString(text: string): string {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0xd800 && code <= 0xdfff)) {
      return JSON.stringify(text);
    }
  }
  return `"${text}"`;
}
