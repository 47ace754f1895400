import { hash } from 'node:crypto';
import { writeJson } from './json-writer.js';

interface JsonText {
  text: string;
  tag?: string;
}

/** Keeps the text of a shared array on the array itself: a WeakMap would give the garbage collector as much work as the text. */
const TEXT = Symbol('JSON text');

interface Shared {
  [TEXT]?: Partial<JsonText>;
}

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
  const json = (Array.isArray(value) && (value as Shared)[TEXT]) || {};
  json.text ??= writeJson(value);
  if (isTagged) json.tag ??= entityTag(json.text);
  return json as JsonText;
}

/** Number of characters (Unicode code points); a surrogate pair is one character. */
export function countCharacters(text: string): number {
  return text.replace(/[\u{10000}-\u{10ffff}]/gu, '_').length;
}

/** A weak entity tag (RFC 9110, section 8.8.3) of a representation: the same bytes give the same tag on every instance. */
export function entityTag(body: string | Buffer): string {
  return `W/"${hash('sha1', body, 'base64url')}"`;
}
