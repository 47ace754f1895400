import { type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { unescape } from 'node:querystring';
import { type Handler, queryClassOf } from '#input';
import { DirectInterceptor } from '#internals';
import { Config, rootUrlOf } from '#settings';
import type { Page } from './keyset.js';

/** An address without characters that must be escaped. */
const PLAIN = /^[\w/?=&.-]*$/;

/** Sends the items of the `Page` that a handler returns, with a link to the next page in `Link` (RFC 8288). */
@Injectable()
export class PageInterceptor extends DirectInterceptor {
  private readonly root: string;

  /** The parameter `limit` of a request without it, by handler. */
  private readonly defaultLimits = new Map<unknown, string>();

  constructor({ publicBaseUrl }: Config) {
    super();
    this.root = rootUrlOf(publicBaseUrl);
  }

  override after(result: unknown, context: ExecutionContext): unknown {
    const { items, nextCursor } = result as Page<unknown>;
    if (nextCursor !== undefined) {
      const address = `${this.root}${this.addressOf(context)}cursor=${nextCursor}`;
      context.getArgByIndex<Response>(1).appendHeader('Link', `<${address}>; rel="next"`);
    }
    return items;
  }

  private addressOf(context: ExecutionContext): string {
    const { path, originalUrl } = context.getArgByIndex<Request>(0);
    let limit: string | undefined;
    let filters = '';
    for (let end = originalUrl.indexOf('?'); end !== -1;) {
      const start = end + 1;
      end = originalUrl.indexOf('&', start);
      const parameter = originalUrl.slice(start, end === -1 ? undefined : end);
      const name = nameOf(parameter);
      if (name === 'limit') limit = `${parameter}&`;
      else if (name !== 'cursor' && name !== '') filters += `${parameter}&`;
    }
    return escapeAddress(`${path}?${limit ?? this.defaultLimitOf(context)}${filters}`);
  }

  private defaultLimitOf(context: ExecutionContext): string {
    const handler = context.getHandler() as Handler;
    let parameter = this.defaultLimits.get(handler);
    if (parameter === undefined) {
      const Query = queryClassOf(context.getClass(), handler);
      const { limit } = Query ? (new Query() as { limit?: number }) : {};
      this.defaultLimits.set(handler, (parameter = limit === undefined ? '' : `limit=${limit}&`));
    }
    return parameter;
  }
}

/** Escapes the characters that a URL must not have: they could end a link. Escapes of the client stay as they are. */
export function escapeAddress(address: string): string {
  return PLAIN.test(address) ? address : encodeURI(address).replaceAll('%25', '%');
}

function nameOf(parameter: string): string {
  const end = parameter.indexOf('=');
  const name = end === -1 ? parameter : parameter.slice(0, end);
  return name.includes('%') ? unescape(name) : name;
}
