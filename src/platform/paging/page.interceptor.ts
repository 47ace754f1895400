import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type ParsedUrlQuery, stringify } from 'node:querystring';
import { Config } from '../../config.js';
import { type Handler, queryClassOf } from '../input/handler-parameters.js';
import { DirectInterceptor } from '../internals/direct-interceptor.js';
import type { Page } from './keyset.js';

/** Sends the items of the `Page` that a handler returns, with a link to the next page in `Link` (RFC 8288). */
@Injectable()
export class PageInterceptor extends DirectInterceptor {
  /** The public URL before the paths of routes. */
  private readonly root: string;

  /** The page size of a request without `limit`, by handler. */
  private readonly defaultLimits = new Map<unknown, string | undefined>();

  constructor({ publicBaseUrl }: Config) {
    super();
    this.root = publicBaseUrl.replace(/\/v1$/, '');
  }

  override after(result: unknown, context: ExecutionContext): unknown {
    const { items, nextCursor } = result as Page<unknown>;
    if (nextCursor !== undefined) {
      const { path, query } = context.getArgByIndex<Request>(0);
      const { limit = this.defaultLimitOf(context), ...filters } = query as ParsedUrlQuery;
      delete filters['cursor'];
      const parameters = stringify({ ...(limit !== undefined && { limit }), ...filters, cursor: nextCursor });
      // Characters that a URL must not have could end the link. Escapes of the client stay as they are.
      const address = `${this.root}${encodeURI(path).replaceAll('%25', '%')}?${parameters}`;
      context.getArgByIndex<Response>(1).appendHeader('Link', `<${address}>; rel="next"`);
    }
    return items;
  }

  private defaultLimitOf(context: ExecutionContext): string | undefined {
    const handler = context.getHandler() as Handler;
    if (!this.defaultLimits.has(handler)) {
      const Query = queryClassOf(context.getClass(), handler);
      const { limit } = Query ? (new Query() as { limit?: number }) : {};
      this.defaultLimits.set(handler, limit?.toString());
    }
    return this.defaultLimits.get(handler);
  }
}
