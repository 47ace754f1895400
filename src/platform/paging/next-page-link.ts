import type { Response } from 'express';

/** Adds the address of the next page to `Link` (RFC 8288). Other links of the answer stay. */
export function linkNextPage(response: Response, address: string): void {
  response.appendHeader('Link', `<${address}>; rel="next"`);
}
