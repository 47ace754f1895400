import type { Response } from 'express';

/** Adds the URL of the next page to `Link` (RFC 8288), beside other links of the answer. */
export function linkNextPage(response: Response, address: string): void {
  response.appendHeader('Link', `<${address}>; rel="next"`);
}
