import type { IncomingMessage } from 'node:http';

/**
 * How often a header field was sent. Node keeps only the first of some fields (`Host`, `Authorization`), so a second one
 * shows here alone.
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
