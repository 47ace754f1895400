import { SetMetadata } from '@nestjs/common';
import { MAX_BODY_LIMIT } from '../server/requests/server-limits.js';

export const BODY_LIMIT_METADATA = 'petstore:body-limit';

/**
 * Sets the largest body of a handler, or of every handler of a controller, instead of MAX_BODY_BYTES. A larger body is
 * answered 413. The limit applies to the bytes as sent, and again to the content after `Content-Encoding` is undone.
 *
 * @param bytes 1 to 16,777,216 (16 MiB)
 * @throws Error at start for any other number
 */
export function BodyLimit(bytes: number): ClassDecorator & MethodDecorator {
  if (!Number.isInteger(bytes) || bytes < 1 || bytes > MAX_BODY_LIMIT) {
    throw new Error(`@BodyLimit(${bytes}) must be a number of bytes from 1 to ${MAX_BODY_LIMIT}.`);
  }
  return SetMetadata(BODY_LIMIT_METADATA, bytes);
}
