import { randomBytes } from 'node:crypto';

/** The header field of the request id, in requests and responses. */
export const REQUEST_ID_HEADER = 'X-Request-Id';

const WELL_FORMED_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The id of a request: the `X-Request-Id` that its client sent, if it is well-formed, else a new one. */
export function requestIdFrom(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && WELL_FORMED_REQUEST_ID.test(sent) ? sent : newRequestId();
}

// Random bytes are fetched for 128 ids at once, because each call of the generator is expensive.
const ID_BYTES = 12;
let pool = Buffer.alloc(0);
let offset = 0;

/** A new request id: 16 characters of base64url, 96 random bits. */
export function newRequestId(): string {
  if (offset >= pool.length) {
    pool = randomBytes(ID_BYTES * 128);
    offset = 0;
  }
  offset += ID_BYTES;
  return pool.toString('base64url', offset - ID_BYTES, offset);
}
