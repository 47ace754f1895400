import type { IncomingMessage } from 'node:http';

/**
 * How often a header field was sent. `request.headers` cannot tell: Node keeps only the first `Host` and the first
 * `Authorization`.
 *
 * @param name in lower case
 */
export function countHeader(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index] as string;
    if (candidate.length === name.length && candidate.toLowerCase() === name) {
      count++;
    }
  }
  return count;
}

/** Whether the request announces a body (RFC 9112, section 6.3). */
export function announcesBody(request: IncomingMessage): boolean {
  const length = request.headers['content-length'];
  return (length !== undefined && length !== '0') || request.headers['transfer-encoding'] !== undefined;
}
