import type { Express, Response } from 'express';
import { ServerResponse } from 'node:http';
import { ErrorBody } from '#errors';
import { entityTag, jsonOf } from '#json';
import { cleanHead } from './node-http.internals.js';
import type { RequestContext } from './requests/request-context.js';

/** Header fields that describe the handler's intended content. They are removed from error responses. */
const FIELDS_OF_CONTENT = ['Content-Disposition', 'Content-Encoding', 'ETag', 'Expires', 'Last-Modified'];

/** Removed except from a 416, which they explain (RFC 9110, section 15.5.17). */
const FIELDS_OF_RANGES = ['Accept-Ranges', 'Content-Range'];

/** Settings of Express for its own JSON, which has no int64 then. */
const JSON_SETTINGS = ['json escape', 'json replacer', 'json spaces'];

/** Lets `response.json`, and `response.send` of an object, write what the service writes for a returned value. */
export function writeOwnJson(app: Express): void {
  const byExpress = app.response.json;
  app.response.json = function (value: unknown) {
    const body = value instanceof ErrorBody ? prepareError(this, value) : value;
    if (JSON_SETTINGS.some((name) => app.get(name) !== undefined)) return byExpress.call(this, body);
    const text = jsonOf(body);
    if (!this.hasHeader('Content-Type')) this.setHeader('Content-Type', 'application/json');
    const isRead = this.req.method === 'GET' || this.req.method === 'HEAD';
    if (text !== undefined && this.statusCode === 200 && isRead && !this.hasHeader('ETag'))
      this.setHeader('ETag', entityTag(text));
    return this.send(text);
  };
}

/**
 * Calls `before` ahead of the head of each response, and `failed` where Node refuses a head: its status message has characters that HTTP
 * cannot carry, or it has a `Trailer` and is not chunked. Code that pipes a file into the response could not catch that.
 */
export function guardHeads(
  app: Express,
  before: (response: Response) => void,
  failed: (response: Response, failure: unknown) => void,
): void {
  const { response } = app;
  const faults = new WeakSet<object>();
  // Another server than the platform's may use the application, too.
  const isOurs = ({ req }: Response): boolean => (req.context as RequestContext | undefined)?.isForeign === false;
  // As Node documents, `write` and `end` call it, too: it is called before the first byte of every response.
  response.writeHead = function (...head: unknown[]) {
    if (isOurs(this)) before(this);
    try {
      return ServerResponse.prototype.writeHead.apply(this, head as [number]) as never;
    } catch (error) {
      cleanHead(this);
      faults.add(error as object);
      throw error;
    }
  };
  for (const name of ['write', 'end'] as const) {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with the response as its `this`
    const method = ServerResponse.prototype[name] as (this: Response, ...parameters: unknown[]) => never;
    response[name] = function (this: Response, ...parameters: unknown[]) {
      if (this.headersSent) return method.apply(this, parameters);
      try {
        return method.apply(this, parameters);
      } catch (failure) {
        if (!faults.has(failure as object) || !isOurs(this)) throw failure;
        failed(this, failure);
        return (name === 'end' ? this : false) as never;
      }
    };
  }
}

/** Sends a body by the methods of the response, as stock Nest does. */
export function sendByMethods(response: Response, body: unknown): void {
  if (body === undefined || body === null) response.send();
  else if (typeof body === 'string' || Buffer.isBuffer(body)) response.send(body);
  else if (typeof body === 'object') response.json(body);
  else response.send(jsonOf(body));
}

/** Sets the header fields of an error. Returns its body as the handler has declared it. */
export function prepareError(response: Response, body: ErrorBody): ErrorBody {
  for (const name of FIELDS_OF_CONTENT) response.removeHeader(name);
  if (body.status !== 416) for (const name of FIELDS_OF_RANGES) response.removeHeader(name);
  for (const [name, value] of Object.entries(body.error.headers)) response.setHeader(name, value);
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Cache-Control', 'no-store');
  const { context } = response.req;
  context.errorBody = body;
  return context.sendsFaults ? body.withFaults() : body;
}

/** Sets the media type of text or bytes. A text is sent as UTF-8, so its type gets this charset, unless it is JSON. */
export function setMediaType(response: Response, body: string | Buffer): void {
  const type = response.getHeader('content-type');
  if (type === undefined) {
    const ofBody = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream';
    response.setHeader('Content-Type', ofBody);
  } else if (typeof body === 'string' && typeof type === 'string' && !/^[^;]*\bjson\b|; *charset=utf-8/i.test(type)) {
    const [, name, rest = ''] = /^([^;]*)(.*)$/.exec(type) ?? [];
    response.setHeader(
      'Content-Type',
      `${name?.trim()}; charset=utf-8${rest.replace(/; *charset=("[^"]*"|[^;]*)/i, '')}`,
    );
  }
}
