import type { Express } from 'express';
import {
  IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';

/*
 * The requests and responses of an Express application, made to be its own from the start.
 *
 * Express gives every request and response its own prototype, `app.request` and `app.response`, by
 * `Object.setPrototypeOf` as the request arrives. Changing the prototype of a live object makes V8 throw away what it
 * learned of its shape, and costs more than everything else Express does. The prototypes of these classes stand in front of
 * Express's, and become the application's, so that Express's assignment changes nothing and costs nothing. All that
 * Express promises of `req` and `res` holds.
 *
 * They extend Node's classes, and do not just call them: so V8 knows beforehand how many members Node adds to each object.
 */

/** Makes the class of an application's requests. */
export function createRequestClass(app: Express): typeof IncomingMessage {
  class Request extends IncomingMessage {}
  app.request = Object.setPrototypeOf(Request.prototype, app.request) as Express['request'];
  return Request;
}

const FIELDS = Symbol('header fields');

/** Header fields in their order: a name, its value, a name, its value, and so on, as `writeHead` takes them. */
type Fields = (string | OutgoingHttpHeader)[];

/**
 * Makes the class of an application's responses.
 *
 * Node keeps header fields in an object, by their names in lower case, which V8 treats as a hash table: for a dozen of them
 * that is a sixth of all that Node does for a response. Here they are in a list, which is searched as fast, and goes to
 * `writeHead` as it is. What these methods promise, return and throw is what Node's do.
 */
export function createResponseClass(app: Express): typeof ServerResponse {
  class Response extends ServerResponse {
    [FIELDS]: Fields = [];

    override setHeader(name: string, value: OutgoingHttpHeader): this {
      if (this.headersSent) return super.setHeader(name, value);
      validateHeaderName(name);
      validateHeaderValue(name, value as string);
      put(this[FIELDS], name, value);
      return this;
    }

    override appendHeader(name: string, value: string | readonly string[]): this {
      if (this.headersSent) return super.appendHeader(name, value);
      validateHeaderName(name);
      validateHeaderValue(name, value as string);
      const fields = this[FIELDS];
      const index = indexOf(fields, name);
      if (index === -1) {
        fields.push(name, value as OutgoingHttpHeader);
      } else {
        fields[index + 1] = [fields[index + 1], value].flat() as string[];
      }
      return this;
    }

    override getHeader(name: string): OutgoingHttpHeader | undefined {
      // Node throws at a name that is no text.
      if (typeof name !== 'string') return super.getHeader(name);
      const index = indexOf(this[FIELDS], name);
      return index === -1 ? undefined : this[FIELDS][index + 1];
    }

    override hasHeader(name: string): boolean {
      if (typeof name !== 'string') return super.hasHeader(name);
      return indexOf(this[FIELDS], name) !== -1;
    }

    override removeHeader(name: string): void {
      // Node throws at what it must, and remembers not to add this field itself.
      super.removeHeader(name);
      const index = indexOf(this[FIELDS], name);
      if (index !== -1) this[FIELDS].splice(index, 2);
    }

    override getHeaderNames(): string[] {
      return this.getRawHeaderNames().map((name) => name.toLowerCase());
    }

    // Node's types have it for requests alone.
    getRawHeaderNames(): string[] {
      return this[FIELDS].filter((_, index) => index % 2 === 0) as string[];
    }

    override getHeaders(): OutgoingHttpHeaders {
      const headers = Object.create(null) as OutgoingHttpHeaders;
      for (const name of this.getHeaderNames()) headers[name] = this.getHeader(name);
      return headers;
    }

    override writeHead(status: number, reason?: unknown, headers?: unknown): this {
      const message = typeof reason === 'string' ? reason : undefined;
      const given = (message === undefined ? (headers ?? reason) : headers) as OutgoingHttpHeaders | undefined;
      const fields = this[FIELDS];
      if (this.headersSent || fields.length === 0) return super.writeHead(status, message, given);
      if (given) setAll(this, given);
      return super.writeHead(status, message, fields);
    }
  }
  app.response = Object.setPrototypeOf(Response.prototype, app.response) as Express['response'];
  return Response as typeof ServerResponse;
}

/**
 * Sets a header field of a response whose header section is not sent. For names and values that are valid beyond doubt:
 * others are found only when Node sends them.
 */
export function setValidHeader(response: ServerResponse, name: string, value: string): void {
  put((response as ServerResponse & { [FIELDS]: Fields })[FIELDS], name, value);
}

function put(fields: Fields, name: string, value: OutgoingHttpHeader): void {
  const index = indexOf(fields, name);
  if (index === -1) {
    fields.push(name, value);
  } else {
    fields[index] = name;
    fields[index + 1] = value;
  }
}

function indexOf(fields: Fields, name: string): number {
  for (let index = 0; index < fields.length; index += 2) {
    const candidate = fields[index] as string;
    if (candidate === name || (candidate.length === name.length && candidate.toLowerCase() === name.toLowerCase())) {
      return index;
    }
  }
  return -1;
}

/** As Node does: these win over those that were set before, and in a list a field may come more than once. */
function setAll(response: ServerResponse, given: OutgoingHttpHeaders | OutgoingHttpHeader[]): void {
  if (Array.isArray(given)) {
    for (let index = 0; index < given.length; index += 2) response.removeHeader(given[index] as string);
    for (let index = 0; index < given.length; index += 2) {
      response.appendHeader(given[index] as string, given[index + 1] as string);
    }
  } else {
    for (const [name, value] of Object.entries(given)) response.setHeader(name, value as OutgoingHttpHeader);
  }
}
