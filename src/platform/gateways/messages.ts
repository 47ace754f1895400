import { readJson } from '../json/reader/json-reader.js';

/** Reads a WebSocket message. Undefined for a message that is no JSON, which gateways ignore. */
export function readMessage(message: unknown): unknown {
  try {
    return readJson(Buffer.from(message as string | Buffer));
  } catch {
    return undefined;
  }
}

/**
 * Converts bigints to numbers, for JSON.stringify, which socket.io uses. Bytes and values with `toJSON` stay unchanged.
 *
 * @throws RangeError for an integer beyond 2^53, which JSON.stringify cannot write exactly
 */
export function withoutBigints(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new RangeError('socket.io cannot send an integer beyond 2^53 exactly.');
    return number;
  }
  if (Array.isArray(value)) return value.map(withoutBigints);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return value;
  }
  if ('toJSON' in value || value instanceof Blob) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withoutBigints(member)]));
}
