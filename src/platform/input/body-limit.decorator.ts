import { SetMetadata } from '@nestjs/common';
import { MAX_BODY_LIMIT } from '../server/requests/server-limits.js';

export const BODY_LIMIT_METADATA = 'petstore:body-limit';

/**
 * The largest body that a handler, or every handler of a controller, takes, instead of MAX_BODY_BYTES. A larger one is
 * answered 413; so is one whose content, after `Content-Encoding` is undone, is larger.
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
