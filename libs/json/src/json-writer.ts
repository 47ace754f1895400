import { hash } from 'node:crypto';

/**
 * The JSON text (RFC 8259) of a value, by the rules of `JSON.stringify` without indentation, except that a bigint is written as a number
 * with all its digits, boxed primitives (`new Number(1)`) as objects, and an instance of a class that declares its members
 * (`findMembersBy`) with exactly these, in their order.
 *
 * @throws TypeError when the value has no JSON text at all, as undefined
 * @throws RangeError when the value contains itself
 */
export function writeJson(value: unknown): string {
  const text = write(value, '');
  if (text === undefined) throw new TypeError(`A value of type ${typeof value} cannot be written as JSON.`);
  return text;
}

/** As `writeJson`; undefined for a value that has no JSON text, as `JSON.stringify` returns it. */
export function jsonOf(value: unknown): string | undefined {
  return write(value, '');
}

/** @param key the parameter of `toJSON` */
function write(given: unknown, key: string | number): string | undefined {
  const value = hasToJson(given) ? given.toJSON(String(key)) : given;
  if (typeof value === 'string') return writeString(value);
  if (typeof value === 'bigint') return writeBigint(value);
  if (typeof value === 'boolean') return `${value}`;
  if (typeof value === 'number') return Number.isFinite(value) ? `${value}` : 'null';
  if (typeof value !== 'object') return undefined;
  if (value === null) return 'null';
  return Array.isArray(value) ? writeArray(value) : writeObject(value as Members);
}

type Members = Record<string, unknown>;

/** The names of the members that are written, and the text before the value of each one. */
interface Declaration {
  readonly names: readonly string[];
  readonly starts: readonly string[];
}

/** By prototype, which no member can hide; null for classes that declare no members. */
const declarations = new WeakMap<object, Declaration | null>();

type Class = object & { readonly prototype: object };

let findMembers: (type: Class) => readonly string[] | undefined = () => undefined;

/** Has `find` say which members a class declares, undefined for none. It is asked once for each class, when an instance is written. */
export function findMembersBy(find: typeof findMembers): void {
  findMembers = find;
}

function declarationOf(object: object): Declaration | null {
  const prototype = Object.getPrototypeOf(object) as object | null;
  if (prototype === Object.prototype || prototype === null) return null;
  let declaration = declarations.get(prototype);
  if (declaration === undefined) {
    const names = hasToJson(prototype) ? undefined : findMembers(prototype.constructor);
    declarations.set(prototype, (declaration = names ? declare(names) : null));
  }
  return declaration;
}

function declare(names: readonly string[]): Declaration {
  return { names, starts: names.map((name, index) => `${index === 0 ? '{' : ','}${writeString(name)}:`) };
}

function writeArray(array: readonly unknown[]): string {
  let text = '[';
  // By index, not by iterator: holes are null.
  for (let index = 0; index < array.length; index++) {
    text += (index > 0 ? ',' : '') + (write(array[index], index) ?? 'null');
  }
  return text + ']';
}

function writeObject(object: Members): string {
  const { names, starts } = declarationOf(object) ?? declare(Object.keys(object));
  let text = '';
  let index = 0;
  // Most objects have exactly these members, in this order, and V8 reads them in a loop by `in` without a look-up.
  for (const name in object) {
    const member = name === names[index] ? write(object[name], name) : undefined;
    if (member === undefined) break;
    text += starts[index++] + member;
  }
  for (; index < names.length; index++) {
    const name = names[index] as string;
    const member = write(object[name], name);
    if (member !== undefined) text += `${text === '' ? '{' : ','}${writeString(name)}:${member}`;
  }
  return text === '' ? '{}' : text + '}';
}

/** All digits. Those of a number take half the time. */
function writeBigint(value: bigint): string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? `${number}` : `${value}`;
}

/** Whether a value has a custom `toJSON`, not the one of {@link declareJson}. */
export function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  if (typeof value !== 'object' || value === null) return false;
  const { toJSON } = value as Members;
  return typeof toJSON === 'function' && toJSON !== declaredJson;
}

/**
 * Lets `JSON.stringify` take instances of a class that declares its members, which modules call for logs, caches and queues. An int64
 * beyond 2^53 is the text of its digits, because `JSON.stringify` refuses a bigint. A `toJSON` of the class stays.
 */
export function declareJson(of: object): void {
  if ('toJSON' in of) return;
  Object.defineProperty(of, 'toJSON', { value: declaredJson, configurable: true, writable: true });
}

function declaredJson(this: object): unknown {
  if (Array.isArray(this)) return this.map(withoutBigints);
  const names = declarationOf(this)?.names ?? Object.keys(this);
  return Object.fromEntries(names.map((name) => [name, withoutBigints((this as Members)[name])]));
}

function withoutBigints(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutBigints);
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
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

/** The JSON text of a response, by the rules of `writeJson`, and its entity tag if needed; those of a {@link shared} array are kept. */
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
