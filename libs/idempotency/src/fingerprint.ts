import { createHash } from 'node:crypto';
import { writeJson } from '#json';

/**
 * Identifies the meaning of a request, in 32 bytes: its operation, and its input as the handler got it. Two inputs mean the
 * same if their JSON texts differ only in the order of members; integers count with all their digits.
 *
 * Requests may be repeated after a deploy, so members whose value is the default of their class do not count: a new member
 * with a default changes nothing for clients that do not send it. `operation` is method and route.
 */
export function fingerprintOf(operation: string, input: object): Buffer {
  return createHash('sha256')
    .update(`${operation}\n${writeJson(sortMembers(input))}`)
    .digest();
}

/** In place of a number that a double cannot hold. */
const BEYOND = 10n ** 400n;

function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sortMembers);
  }
  // class-transformer makes them of objects and arrays. JSON has no members of either.
  if (value instanceof Map) return sortMembers(Object.fromEntries(value));
  if (value instanceof Set) return [...value].map(sortMembers);
  // JSON would write null. No bigint that a client sends is as large.
  if (value === Infinity || value === -Infinity) return value > 0 ? BEYOND : -BEYOND;
  if (typeof value !== 'object' || value === null || ('toJSON' in value && typeof value.toJSON === 'function')) {
    return value;
  }
  const defaults = defaultsOf(value);
  const members = Object.entries(value)
    .map(([name, member]) => [name, sortMembers(member)] as const)
    .filter(
      ([name, member]) => member === undefined || !defaults?.has(name) || writeJson(member) !== defaults.get(name),
    )
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members);
}

/** By prototype: the JSON texts of a new instance's members, by name. */
const defaultsByClass = new WeakMap<object, ReadonlyMap<string, string>>();

function defaultsOf(instance: object): ReadonlyMap<string, string> | undefined {
  const prototype = Object.getPrototypeOf(instance) as { constructor: new () => object } | null;
  if (prototype === null || prototype === Object.prototype || prototype.constructor.length > 0) return undefined;
  let defaults = defaultsByClass.get(prototype);
  if (defaults === undefined) {
    const members = Object.entries(new prototype.constructor()).filter(([, value]) => value !== undefined);
    defaults = new Map(members.map(([name, value]) => [name, writeJson(sortMembers(value))]));
    defaultsByClass.set(prototype, defaults);
  }
  return defaults;
}
