import type { Express, Response } from 'express';
import { ErrorBody } from '#errors';
import { entityTag, jsonOf } from '#json';

/** Header fields that describe the handler's intended content. They are removed from error responses. */
const FIELDS_OF_CONTENT = [
  ...['Accept-Ranges', 'Content-Disposition', 'Content-Encoding', 'Content-Range'],
  ...['ETag', 'Expires', 'Last-Modified'],
];

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
