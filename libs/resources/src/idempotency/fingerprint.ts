import { createHash } from 'node:crypto';
import { type SubType, subTypesOf } from '#input';
import { hasToJson, writeJson } from '#json';
import type { IdempotencyKey } from './idempotency-key.js';

/**
 * Identifies the meaning of a request, in 32 bytes: its operation, and its input as the handler got it. Inputs that a handler can tell
 * apart have different fingerprints: by class, `0` from `-0`, a Date from its text. Four things do not count, because clients cannot
 * send them or do not mean them: the order of members, undefined in place of a missing member, a bigint in place of the same
 * number, and members without an accessor or name that other code can read, such as `#secret` and symbols.
 *
 * Requests may be repeated after a deploy, so members whose value is the default of their class do not count: a new member
 * with a default changes nothing for clients that do not send it.
 *
 * @param operation method and route
 * @param path the decoded path parameters, in the order of the route
 * @throws RangeError when the input contains itself
 */
export function fingerprintOf({ operation, path }: Pick<IdempotencyKey, 'operation' | 'path'>, input: object): Buffer {
  const target = path.length === 0 ? operation : `${operation}\n${JSON.stringify(path)}`;
  return createHash('sha256')
    .update(`${target}\n${textOf(input)}`)
    .digest();
}

/**
 * The JSON text of a value, with its members in order; for what JSON has not, a text that is no JSON. Keys that are kept must stay
 * valid, so the text of a JSON value never changes.
 *
 * @param subTypes of the member that holds the value
 */
function textOf(value: unknown, subTypes: readonly SubType[] = []): string {
  if (typeof value === 'string') return writeJson(value);
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value);
  const itemOf = (item: unknown): string => textOf(item, subTypes);
  if (Array.isArray(value)) return `[${Array.from(value, itemOf).join()}]`;
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return `${tagOf(value)}(${bytes.toString('base64')})`;
  }
  // What class-transformer has made of an array or object. A class of its own may have members besides its items.
  const items = Symbol.iterator in value ? Array.from(value as Iterable<unknown>, itemOf) : undefined;
  return `${items ? `${tagOf(value)}(${items.join()})` : ''}${textOfObject(value, subTypes)}`;
}

function textOfObject(value: object, subTypes: readonly SubType[]): string {
  const { type, accessors, defaults } = classOf(value);
  const chosen = subTypes.find((subType) => subType.value === type)?.name ?? '';
  const hasJson = hasToJson(value);
  // Without a prototype, names such as `__proto__` are ordinary. Names that are integers come first, as in any object.
  const texts = Object.create(null) as Record<string, string>;
  for (const name of [...Object.keys(value), ...accessors].sort()) {
    const member = (value as Record<string, unknown>)[name];
    // Objects within a library's class, such as a locale, may be caches that requests share.
    if (typeof member === 'function' || (hasJson && typeof member === 'object')) continue;
    const text = textOf(member, type && subTypesOf(type, name));
    if (text !== (defaults?.get(name) ?? 'undefined')) texts[name] = `${writeJson(name)}:${text}`;
  }
  const members = `{${Object.values(texts).join()}}`;
  if (hasJson) return `${chosen}JSON(${textOf(value.toJSON(''))})${members}`;
  // An instance without members may have a text, such as URLSearchParams.
  const hasText = type !== undefined && members === '{}' && value.toString !== Object.prototype.toString;
  return `${chosen}${hasText ? (value as { toString(): string }).toString() : ''}${members}`;
}

interface ClassOfValue {
  /** Undefined for a plain object. */
  readonly type: (new () => object) | undefined;
  /** Properties of the prototype that can be read and written: `plainToInstance` sets them. */
  readonly accessors: readonly string[];
  /** The texts of a new instance's members, by name. */
  readonly defaults: ReadonlyMap<string, string> | undefined;
}

const PLAIN: ClassOfValue = { type: undefined, accessors: [], defaults: undefined };

/** By prototype. */
const classes = new WeakMap<object, ClassOfValue>();

function classOf(instance: object): ClassOfValue {
  const prototype = Object.getPrototypeOf(instance) as { constructor: new () => object } | null;
  if (prototype === null || isRoot(prototype)) return PLAIN;
  let known = classes.get(prototype);
  if (known === undefined) {
    const type = prototype.constructor;
    known = { type, accessors: accessorsOf(prototype), defaults: undefined };
    // Kept before the new instance is read, which is of this class, too.
    classes.set(prototype, known);
    if (type.length === 0) classes.set(prototype, (known = { ...known, defaults: defaultsOf(type, known.accessors) }));
  }
  return known;
}

function defaultsOf(type: new () => object, accessors: readonly string[]): Map<string, string> {
  const made = new type() as Record<string, unknown>;
  const names = [...Object.keys(made), ...accessors].filter((name) => made[name] !== undefined);
  return new Map(names.map((name) => [name, textOf(made[name], subTypesOf(type, name))]));
}

function accessorsOf(prototype: object): string[] {
  if (isRoot(prototype)) return [];
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).filter(
    ([, found]) => found.get !== undefined && found.set !== undefined,
  );
  return [...own.map(([name]) => name), ...accessorsOf(Object.getPrototypeOf(prototype) as object)];
}

/** Whether a prototype is that of all objects, which the realm of a value has of its own. */
function isRoot(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null;
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1);
}
