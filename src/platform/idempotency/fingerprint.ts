import { createHash } from 'node:crypto';
import { writeJson } from '../json/json-writer.js';

/**
 * The SHA-256 of what a request means: its operation, and its input as the handler got it. Two inputs are the same when
 * their JSON texts differ in nothing but the order of members; integers count with all their digits.
 */
export function fingerprintOf(operation: string, input: unknown): Buffer {
  return createHash('sha256')
    .update(`${operation}\n${writeJson(sortMembers(input))}`)
    .digest();
}

function sortMembers(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sortMembers);
  }
  if (typeof value !== 'object' || value === null || 'toJSON' in value) {
    return value;
  }
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sortMembers(member)]));
}
