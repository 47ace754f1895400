/**
 * The JSON text (RFC 8259) of a value, by the rules of `JSON.stringify` without indentation, except that a bigint is
 * written as a number with all its digits. So `toJSON` is honoured (dates), undefined, functions and symbols are left
 * out of objects and null in arrays, NaN and the infinities are null, and an unpaired surrogate is escaped.
 * Not supported: boxed primitives (`new Number(1)`), which are written as objects.
 *
 * @throws TypeError when the value has no JSON text at all, as undefined
 * @throws RangeError when the value contains itself
 */
export function writeJson(value: unknown): string {
  const text = write(value, '');
  if (text === undefined) {
    throw new TypeError(`A value of type ${typeof value} cannot be written as JSON.`);
  }
  return text;
}

/** @param key the parameter of `toJSON` */
function write(value: unknown, key: string | number): string | undefined {
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
      return Array.isArray(value) ? writeArray(value) : writeObject(value as Members);
    default:
      return undefined;
  }
}

type Members = Record<string, unknown>;

function writeArray(array: readonly unknown[]): string {
  let text = '[';
  // By index, not by iterator: holes are null.
  for (let index = 0; index < array.length; index++) {
    text += (index === 0 ? '' : ',') + (write(array[index], index) ?? 'null');
  }
  return text + ']';
}

function writeObject(object: Members): string {
  let text = '{';
  for (const name of Object.keys(object)) {
    const member = write(object[name], name);
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
