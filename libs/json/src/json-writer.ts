import { DECORATORS } from '@nestjs/swagger';
import { getMetadataStorage } from 'class-validator';
import { hash } from 'node:crypto';

/**
 * The JSON text (RFC 8259) of a value, by the rules of `JSON.stringify` without indentation, except that a bigint is
 * written as a number with all its digits. So `toJSON` is honoured (dates), undefined, functions and symbols are left
 * out of objects and null in arrays, NaN and the infinities are null, and an unpaired surrogate is escaped. But boxed
 * primitives (`new Number(1)`) are written as objects.
 *
 * An instance of a class that declares its members (`DECLARED`) is written with exactly these, in their order.
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
      return writeBigint(value);
    case 'boolean':
      // Faster than `String`.
      return `${value}`;
    case 'object':
      if (value === null) {
        return 'null';
      }
      return Array.isArray(value)
        ? writeArray(value)
        : (writerOf(value)?.(value as Members) ?? writeObject(value as Members));
    default:
      return undefined;
  }
}

type Members = Record<string, unknown>;
type Writer = (object: Members) => string;

/** By prototype; null for classes that declare no members. */
const writers = new WeakMap<object, Writer | null>();

/** The name of the rule of class-validator at a member of a class that declares its members. */
export const DECLARED = 'checkedProperty';

/** The names of the members that a class declares, as the document has them; undefined if it declares none. */
function declaredMembers(prototype: object): readonly string[] | undefined {
  const rules = getMetadataStorage().getTargetValidationMetadatas(prototype.constructor, '', true, false);
  if (!rules.some(({ name }) => name === DECLARED)) return undefined;
  // @nestjs/swagger puts a colon before each name.
  const names = Reflect.getMetadata(DECORATORS.API_MODEL_PROPERTIES_ARRAY, prototype) as readonly string[];
  return names.map((name) => name.slice(1));
}

/** Whether an object is an instance of a class that declares its members. */
export function isDeclared(object: object): boolean {
  return writerOf(object) !== undefined;
}

function writerOf(object: object): Writer | undefined {
  const prototype = Object.getPrototypeOf(object) as object | null;
  if (prototype === Object.prototype || prototype === null) return undefined;
  let writer = writers.get(prototype);
  if (writer === undefined) {
    const names = 'toJSON' in prototype ? undefined : declaredMembers(prototype);
    writers.set(prototype, (writer = names ? writerOfMembers(names) : null));
  }
  return writer ?? undefined;
}

function writerOfMembers(names: readonly string[]): Writer {
  const starts = names.map((name, index) => `${index === 0 ? '{' : ','}${writeString(name)}:`);
  // The types of most members, before a call that looks for others.
  const texts = names.map(
    (name, index) => `const value${index} = object[${JSON.stringify(name)}];
      const text${index} = typeof value${index} === 'bigint' ? writeBigint(value${index})
        : typeof value${index} === 'string' ? writeString(value${index}) : write(value${index}, ${JSON.stringify(name)});`,
  );
  const members = starts.map((start, index) => `${JSON.stringify(start)} + text${index} +`);
  const missing = names.map((_, index) => `text${index} === undefined`).join(' || ');
  // Compiled: reading members whose names V8 does not know beforehand takes twice as long as all the rest.
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the names are those of declared properties
  const compile = new Function(
    'writeBigint',
    'writeString',
    'write',
    'writeInParts',
    `return (object) => { ${texts.join(' ')} return ${missing || true} ? writeInParts([${names.map((_, index) => `text${index}`).join()}]) : ${members.join(' ')} '}'; };`,
  ) as (...needs: unknown[]) => Writer;
  // Not written again: members may be objects with members that are missing, too.
  const writeInParts = (parts: readonly (string | undefined)[]): string => {
    const written = parts.map((part, index) => part && `${writeString(names[index] as string)}:${part}`);
    return `{${written.filter((part) => part !== undefined).join()}}`;
  };
  return compile(writeBigint, writeString, write, writeInParts);
}

function writeArray(array: readonly unknown[]): string {
  let text = '[';
  // Usually all items are of one class.
  const first = array[0];
  const writeItem = typeof first === 'object' && first !== null ? writerOf(first) : undefined;
  const prototype: unknown = writeItem && Object.getPrototypeOf(first);
  // By index, not by iterator: holes are null.
  for (let index = 0; index < array.length; index++) {
    const item = array[index];
    if (index > 0) text += ',';
    text +=
      writeItem && typeof item === 'object' && item !== null && Object.getPrototypeOf(item) === prototype
        ? writeItem(item as Members)
        : (write(item, index) ?? 'null');
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

/** All digits. Those of a number take half the time. */
function writeBigint(value: bigint): string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? `${number}` : `${value}`;
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

interface JsonText {
  text: string;
  tag?: string;
}

/** Keeps the text of a shared array on the array itself: a WeakMap would give the garbage collector as much work as the text. */
const TEXT = Symbol('JSON text');

/**
 * Declares that several responses share an array of objects: its text and entity tag are made once. The array and its objects
 * are frozen, so an interceptor that would change them for all responses fails; it may return others.
 *
 * @example return shared(colours);
 * @param items objects whose members are no objects
 */
export function shared<Items extends readonly object[]>(items: Items): Items {
  for (const item of items) Object.freeze(item);
  // An array that is frozen already is written anew each time, unless it is shared already.
  if (Object.isExtensible(items)) Object.defineProperty(items, TEXT, { value: {} });
  return Object.freeze(items);
}

/**
 * The JSON text of a response, by the rules of `writeJson`; that of a {@link shared} array is kept.
 *
 * @param isTagged whether the entity tag is needed
 */
export function jsonTextOf(value: unknown, isTagged: boolean): JsonText {
  const json = (Array.isArray(value) && (value as { [TEXT]?: Partial<JsonText> })[TEXT]) || {};
  json.text ??= writeJson(value);
  if (isTagged) json.tag ??= entityTag(json.text);
  return json as JsonText;
}

/** A weak entity tag (RFC 9110, section 8.8.3) of a representation: the same bytes give the same tag on every instance. */
export function entityTag(body: string | Buffer): string {
  return `W/"${hash('sha1', body, 'base64url')}"`;
}
