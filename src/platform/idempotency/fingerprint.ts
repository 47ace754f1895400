import { createHash } from 'node:crypto';
import { writeJson } from '../json/json-writer.js';
import type { IdempotencyKey } from './idempotency-key.js';

/**
 * Identifies the meaning of a request: its operation, and its input as the handler got it. Two inputs mean the same if their
 * JSON texts differ only in the order of members; integers count with all their digits.
 *
 * Requests may be repeated after a deploy, so a fingerprint must not depend on details that a deploy may change. Version 2
 * names the operation by method and route, and leaves out members whose value is the default of their class: a new member
 * with a default changes nothing for clients that do not send it.
 *
 * Keys are stored with a fingerprint of version 2, and compared with all versions. To add a version, first release an
 * instance that compares with it, and later one that stores it: old and new instances run side by side.
 */
export class Fingerprint {
  /** SHA-256 of the current version, 32 bytes. */
  readonly current: Buffer;

  constructor(
    private readonly key: Pick<IdempotencyKey, 'operation' | 'handler'>,
    private readonly input: object,
  ) {
    this.current = sha256(`2\n${key.operation}\n${writeJson(sortMembers(input, true))}`);
  }

  /** Whether a stored fingerprint, of any version, belongs to the same request. */
  matches(stored: Buffer): boolean {
    return stored.equals(this.current) || stored.equals(this.version1());
  }

  /** The fingerprint of version 1: from the name of the handler, and all members. */
  private version1(): Buffer {
    return sha256(`${this.key.handler}\n${writeJson(sortMembers(this.input, false))}`);
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function sortMembers(value: unknown, withoutDefaults: boolean): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => sortMembers(item, withoutDefaults));
  }
  if (typeof value !== 'object' || value === null || 'toJSON' in value) {
    return value;
  }
  const defaults = withoutDefaults ? defaultsOf(value) : undefined;
  const members = Object.entries(value)
    .map(([name, member]) => [name, sortMembers(member, withoutDefaults)] as const)
    .filter(([name, member]) => defaults === undefined || !isDefault(member, defaults.get(name)))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members);
}

function isDefault(member: unknown, defaultText: string | undefined): boolean {
  return defaultText !== undefined && member !== undefined && writeJson(member) === defaultText;
}

/** By prototype: the JSON texts of a new instance's members, by name. */
const defaultsByClass = new WeakMap<object, ReadonlyMap<string, string>>();

function defaultsOf(instance: object): ReadonlyMap<string, string> | undefined {
  const prototype = Object.getPrototypeOf(instance) as { constructor: new () => object } | null;
  if (prototype === null || prototype === Object.prototype || prototype.constructor.length > 0) return undefined;
  let defaults = defaultsByClass.get(prototype);
  if (defaults === undefined) {
    const members = Object.entries(new prototype.constructor()).filter(([, value]) => value !== undefined);
    defaults = new Map(members.map(([name, value]) => [name, writeJson(sortMembers(value, true))]));
    defaultsByClass.set(prototype, defaults);
  }
  return defaults;
}
