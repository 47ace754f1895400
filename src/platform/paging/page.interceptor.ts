import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { map, type Observable } from 'rxjs';
import { Config } from '../../config.js';
import type { Page } from './keyset.js';

/** Sends the items of the `Page` that a handler returns, with a link to the next page. */
@Injectable()
export class PageInterceptor implements NestInterceptor<Page<unknown>, readonly unknown[]> {
  /** The public URL before the paths of routes. */
  private readonly root: string;

  constructor({ publicBaseUrl }: Config) {
    this.root = publicBaseUrl.replace(/\/v1$/, '');
  }

  intercept(context: ExecutionContext, next: CallHandler<Page<unknown>>): Observable<readonly unknown[]> {
    const http = context.switchToHttp();
    return next.handle().pipe(
      map(({ items, nextCursor }) => {
        if (nextCursor !== undefined) {
          const address = new URL(this.root + http.getRequest<Request>().originalUrl);
          address.searchParams.set('cursor', nextCursor);
          linkNextPage(http.getResponse<Response>(), address.href);
        }
        return items;
      }),
    );
  }
}

/** Adds the URL of the next page to `Link` (RFC 8288), beside other links of the answer. */
export function linkNextPage(response: Response, address: string): void {
  response.appendHeader('Link', `<${address}>; rel="next"`);
}
