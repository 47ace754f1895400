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
type Fields = (string | number)[];

/** Node's types have it for requests alone. */
interface Raw {
  getRawHeaderNames(this: ServerResponse): string[];
}

interface WithFields {
  /** Undefined when Node itself keeps the fields of this response. */
  [FIELDS]: Fields | undefined;
}

/**
 * Makes the class of an application's responses.
 *
 * Node keeps header fields in an object, by their names in lower case, which V8 treats as a hash table: for a dozen of them
 * that is a sixth of all that Node does for a response. Here they are in a list, which is searched as fast, and goes to
 * `writeHead` as it is. What these methods promise, return and throw is what Node's do. Only the order is always the one
 * in which fields were set, where Node puts those first whose names are whole numbers.
 *
 * The list is for fields with one value. What is rare, such as several values, or fields that are given to `writeHead`
 * beside those that were set, makes the response hand its fields to Node, and from then on Node keeps them.
 */
export function createResponseClass(app: Express): typeof ServerResponse {
  class Response extends ServerResponse implements WithFields, Raw {
    [FIELDS]: Fields | undefined = [];

    override setHeader(name: string, value: OutgoingHttpHeader): this {
      if (typeof value !== 'string' && typeof value !== 'number') handOver(this);
      const fields = this[FIELDS];
      if (fields === undefined || this.headersSent) return super.setHeader(name, value);
      validateHeaderName(name);
      validateHeaderValue(name, value as string);
      put(fields, name, value as string | number);
      return this;
    }

    override appendHeader(name: string, value: string | readonly string[]): this {
      handOver(this);
      return super.appendHeader(name, value);
    }

    override getHeader(name: string): OutgoingHttpHeader | undefined {
      const fields = this[FIELDS];
      // Node throws at a name that is no text.
      if (fields === undefined || typeof name !== 'string') return super.getHeader(name);
      const index = indexOf(fields, name);
      return index === -1 ? undefined : fields[index + 1];
    }

    override hasHeader(name: string): boolean {
      const fields = this[FIELDS];
      if (fields === undefined || typeof name !== 'string') return super.hasHeader(name);
      return indexOf(fields, name) !== -1;
    }

    override removeHeader(name: string): void {
      // To Node, fields that have all been removed are not the same as none.
      if (this[FIELDS]?.length === 2) handOver(this);
      // Node throws at what it must, and remembers not to add this field itself.
      super.removeHeader(name);
      const fields = this[FIELDS];
      const index = fields === undefined ? -1 : indexOf(fields, name);
      if (index !== -1) fields?.splice(index, 2);
    }

    override getHeaderNames(): string[] {
      return this.getRawHeaderNames().map((name) => name.toLowerCase());
    }

    getRawHeaderNames(): string[] {
      const fields = this[FIELDS];
      if (fields === undefined) return (ServerResponse.prototype as unknown as Raw).getRawHeaderNames.call(this);
      return fields.filter((_, index) => index % 2 === 0) as string[];
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
      if (fields === undefined || fields.length === 0 || this.headersSent) {
        return super.writeHead(status, message, given);
      }
      // Node sends the second in an encoding of its own, which would not be valid in a list.
      if (given || indexOf(fields, 'Content-Disposition') !== -1) {
        handOver(this);
        return super.writeHead(status, message, given);
      }
      return super.writeHead(status, message, fields);
    }

    // Node's other name of it (DEP0063), which its types have not.
    writeHeader(...parameters: Parameters<Response['writeHead']>): this {
      return this.writeHead(...parameters);
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
  const fields = (response as ServerResponse & WithFields)[FIELDS];
  if (fields === undefined) {
    response.setHeader(name, value);
  } else {
    put(fields, name, value);
  }
}

/** Lets Node keep the fields of a response. */
function handOver(response: ServerResponse & WithFields): void {
  const fields = response[FIELDS];
  if (fields === undefined || response.headersSent) return;
  response[FIELDS] = undefined;
  for (let index = 0; index < fields.length; index += 2) {
    ServerResponse.prototype.setHeader.call(response, fields[index] as string, fields[index + 1] as string | number);
  }
}

function put(fields: Fields, name: string, value: string | number): void {
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
