import type { Request, Response } from 'express';
import type { ApiError } from '../errors/api-error.js';
import { ErrorBody } from '../errors/error-body.js';
import { matchesEntityTag } from '../json/entity-tag.js';
import { JsonBody } from '../json/json-body.js';
import type { Drain } from './drain.js';
import { announcesBody } from './requests/request-body.js';
import type { RequestsInFlight } from './connections/requests-in-flight.js';
import { LINGER_BYTES, LINGER_MS } from './requests/server-limits.js';

/** Writes the answers of the service: media type, caching (RFC 9110 and 9111), length and end of the connection. */
export class Replies {
  constructor(
    private readonly inFlight: RequestsInFlight,
    private readonly drain: Drain,
  ) {}

  /**
   * Sends a body with the status that the response has. Text and bytes are sent as they are, undefined as an empty
   * body, and everything else as JSON.
   *
   * JSON with status 200 to GET or HEAD gets a weak `ETag`; a matching `If-None-Match` turns it into 304.
   * `setCaching` says which caches may keep an answer.
   */
  send(response: Response, body: unknown): void {
    if (body === undefined) {
      setCaching(response);
      this.end(response, undefined);
    } else if (typeof body === 'string' || Buffer.isBuffer(body)) {
      if (!response.hasHeader('Content-Type')) {
        response.setHeader('Content-Type', 'text/plain; charset=utf-8');
      }
      setCaching(response);
      this.end(response, body);
    } else {
      this.sendJson(response, body);
    }
  }

  /** Sends an error that no exception filter will see. */
  sendError(response: Response, error: ApiError): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    for (const [name, value] of Object.entries(error.headers)) {
      response.setHeader(name, value);
    }
    response.statusCode = error.definition.status;
    this.send(response, error.body());
  }

  /**
   * Must be called before the head of each answer is written. Completes the answers that do not come from `send`: those
   * of Express's methods, redirects, streams and events.
   *
   * @param head the arguments of `response.writeHead`
   * @returns the arguments to use instead
   */
  beforeHead(response: Response, head: unknown[]): unknown[] {
    const { req: request } = response;
    const { context } = request;
    if (context.answeredAt === undefined) {
      this.inFlight.release(context);
      setCaching(response);
      // The rest of the request would have to be read before the next one.
      if (!request.complete && announcesBody(request)) response.shouldKeepAlive = false;
    }
    if (!this.drain.hasBegun) return head;
    response.setHeader('Connection', 'close');
    return head.map(withoutConnection);
  }

  private sendJson(response: Response, body: unknown): void {
    const { req: request } = response;
    response.setHeader('Content-Type', 'application/json');
    if (body instanceof ErrorBody) {
      request.context.errorCode = body.code;
    }
    const json = body instanceof JsonBody ? body : JsonBody.of(body);
    if (response.statusCode !== 200 || !isRead(request)) {
      response.setHeader('Cache-Control', 'no-store');
      this.end(response, json.text);
      return;
    }
    setCaching(response);
    const tag = json.entityTag;
    response.setHeader('ETag', tag);
    const ifNoneMatch = request.headers['if-none-match'];
    if (ifNoneMatch !== undefined && matchesEntityTag(ifNoneMatch, tag)) {
      response.statusCode = 304;
      response.removeHeader('Content-Type');
      this.end(response, undefined);
    } else {
      this.end(response, json.text);
    }
  }

  /**
   * Ends the response. While the server drains, the connection is closed behind it. When the rest of the request is
   * still arriving, the connection is closed too, but only after a lingering read (see LINGER_BYTES).
   */
  private end(response: Response, body: string | Buffer | undefined): void {
    const { req: request } = response;
    const { context } = request;
    context.answeredAt = performance.now();
    this.inFlight.release(context);
    if (this.drain.hasBegun) {
      response.shouldKeepAlive = false;
    }
    const isWhole = request.complete || !announcesBody(request);
    // Node adds Content-Length itself to a body that is passed to `end` whole, except to HEAD and for clients that do
    // not know chunked coding. It keeps a Content-Length that is set, which may be that of a failed earlier answer.
    const nodeAddsLength =
      isWhole &&
      request.method !== 'HEAD' &&
      response.useChunkedEncodingByDefault &&
      !response.hasHeader('Content-Length');
    if (body !== undefined && !nodeAddsLength) {
      response.setHeader('Content-Length', Buffer.byteLength(body));
    } else if (body === undefined && response.statusCode !== 204 && response.statusCode !== 304) {
      response.setHeader('Content-Length', 0);
    }
    if (isWhole) {
      response.end(body);
      return;
    }
    response.setHeader('Connection', 'close');
    // A client that waits for `100 Continue` sends no body after a final answer, and a broken body cannot be read:
    // nothing to linger for.
    if (context.expectsContinue || context.bodyError || body === undefined) {
      response.end(body);
      return;
    }
    response.write(body, (error) => (context.isSentEarly = !error));
    dropRest(request, () => response.end());
  }
}

/** Whether a request only reads: GET or HEAD. */
function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Sets the caching fields that the handler has not set. Answers to GET and HEAD may be kept by the client alone, and
 * only used after asking the service (`private, no-cache`, with `Vary: Authorization`). Nothing else may be kept
 * (`no-store`).
 */
function setCaching(response: Response): void {
  const { statusCode } = response;
  const isCacheable = isRead(response.req) && (statusCode === 200 || statusCode === 206 || statusCode === 304);
  if (isCacheable) {
    if (response.hasHeader('Vary')) {
      response.vary('Authorization');
    } else {
      response.setHeader('Vary', 'Authorization');
    }
  }
  if (!response.hasHeader('Cache-Control')) {
    response.setHeader('Cache-Control', isCacheable ? 'private, no-cache' : 'no-store');
  }
}

/** An argument of `writeHead`; if it holds header fields, in a form that Node takes, without `Connection`. */
function withoutConnection(argument: unknown): unknown {
  if (typeof argument !== 'object' || argument === null) return argument;
  const isConnection = (name: unknown): boolean => String(name).toLowerCase() === 'connection';
  return Array.isArray(argument)
    ? argument.filter((_, index) => !isConnection(argument[index - (index % 2)]))
    : Object.fromEntries(Object.entries(argument).filter(([name]) => !isConnection(name)));
}

/** Reads and drops the rest of a request, at most LINGER_BYTES and for at most LINGER_MS. */
function dropRest(request: Request, done: () => void): void {
  let bytes = 0;
  const finish = (): void => {
    clearTimeout(timer);
    request.off('data', count).off('end', finish).off('error', finish).off('close', finish);
    done();
  };
  const count = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > LINGER_BYTES) finish();
  };
  const timer = setTimeout(finish, LINGER_MS);
  request.on('data', count).on('end', finish).on('error', finish).on('close', finish).resume();
}
