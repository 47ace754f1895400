import { hash } from 'node:crypto';

/** A weak entity tag (RFC 9110, section 8.8.3) of a representation: the same bytes give the same tag on every instance. */
export function entityTag(body: string): string {
  return `W/"${hash('sha1', body, 'base64url')}"`;
}
