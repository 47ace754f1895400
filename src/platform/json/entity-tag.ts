import { hash } from 'node:crypto';

/** A weak entity tag (RFC 9110, section 8.8.3) of a representation: the same bytes give the same tag on every instance. */
export function entityTag(body: string): string {
  return `W/"${hash('sha1', body, 'base64url')}"`;
}

/** Whether `If-None-Match` names a tag, weak or strong, by weak comparison (RFC 9110, sections 8.8.3.2 and 13.1.2). */
export function matchesEntityTag(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') {
    return true;
  }
  const opaque = tag.startsWith('W/') ? tag.slice(2) : tag;
  return ifNoneMatch.match(/"[^"]*"/g)?.some((candidate) => candidate === opaque) ?? false;
}
