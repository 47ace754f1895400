import { JsonBody } from '../json/json-body.js';
import type { IdempotencyKey } from './idempotency-key.js';

/** Largest JSON of an answer, in bytes of UTF-8, that is stored with a key for 24 h. */
export const MAX_STORED_ANSWER_BYTES = 65_536;

/**
 * The type of a value after it was written as JSON and read again: a time is its text, and an integer is a bigint only if a
 * number cannot hold it.
 */
export type Kept<T> = T extends bigint
  ? bigint | number
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends { toJSON(): infer Written }
      ? Kept<Written>
      : T extends readonly (infer Item)[]
        ? Kept<Item>[]
        : { [Name in keyof T]: Kept<T[Name]> };

/**
 * The text to store for an answer.
 *
 * @throws Error when the answer is longer than MAX_STORED_ANSWER_BYTES; TypeError when it nests too deep
 */
export function serializeAnswer(answer: unknown, key: IdempotencyKey | undefined): string {
  // Wrapped in an object, so that an answer can be distinguished from a result of `once`, and may be undefined.
  const { text } = JsonBody.of({ answer });
  const length = Buffer.byteLength(text);
  if (length > MAX_STORED_ANSWER_BYTES) {
    throw new Error(
      `The answer${key ? ` to ${key.operation}` : ''} has ${length} bytes, more than the ${MAX_STORED_ANSWER_BYTES} that are ` +
        'kept for an Idempotency-Key. Answer less, or let `once` keep what the answer is made of.',
    );
  }
  return text;
}

/**
 * Reads a stored answer.
 *
 * @throws Error when the text was not made by {@link serializeAnswer}
 */
export function parseAnswer<T>(text: string): Kept<T> {
  const stored = text.startsWith('{') ? (new JsonBody(text).toJSON() as { answer?: unknown }) : undefined;
  if (stored === undefined) {
    throw new Error('What is kept with the Idempotency-Key is no answer: `once` has stored it.');
  }
  return stored.answer as Kept<T>;
}
