import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ServerResponse } from 'node:http';
import { ApiError, ErrorBody, INTERNAL_ERROR } from '#errors';
import { jsonTextOf } from '#json';
import { prepareError, sendByMethods, setMediaType } from '../response-methods.js';
import { announcesBody } from '../requests/request-checks.js';
import { advance, BODY } from '../requests/request-context.js';
import type { RequestsInFlight } from '../requests/requests-in-flight.js';
import { LINGER_BYTES, LINGER_MS } from '../requests/server-limits.js';

/**
 * Header fields that RFC 9110 requires or expects with a status, for responses that lack them. A challenge to a client
 * that sent no credentials should contain no error code (RFC 6750, section 3).
 */
function fieldOf(status: number, challenge: string): readonly [name: string, value: string] | undefined {
  if (status === 401) return ['WWW-Authenticate', challenge];
  return status === 429 || status === 503 ? ['Retry-After', '1'] : undefined;
}

/**
 * Writes the responses of the service: media type, caching (RFC 9110 and 9111), length and end of the connection. Looks for header
 * fields by names in lower case, which Node need not convert.
 */
export class Replies {
  private readonly logger = new Logger(Replies.name);

  constructor(
    private readonly inFlight: RequestsInFlight,
    private readonly server: { readonly isDraining: boolean },
    private readonly challenge: string,
    private readonly methods: Readonly<Pick<Response, 'json' | 'send'>>,
  ) {}

  /**
   * Sends a body with the response's status: text and bytes unchanged, null and undefined as an empty body, everything else as JSON.
   * `Content-Type`, `ETag` and `Cache-Control` of the handler stay, except with an ErrorBody. JSON with status 200 to GET or HEAD gets a
   * weak `ETag`. A matching `If-None-Match`, or `If-Modified-Since`, turns 200 into 304. Where middleware has replaced `response.json` or
   * `response.send`, these send it.
   */
  send(response: Response, value: unknown): void {
    const body = value instanceof ErrorBody ? prepareError(response, value) : value;
    const isText = typeof body === 'string' || Buffer.isBuffer(body);
    if (isText) setMediaType(response, body);
    else if (body !== undefined && body !== null && !response.hasHeader('content-type'))
      response.setHeader('Content-Type', 'application/json');
    if (response.json !== this.methods.json || response.send !== this.methods.send)
      return sendByMethods(response, body);
    setCaching(response);
    if (body === undefined || body === null) this.end(response, undefined);
    else if (isText) this.endUnlessFresh(response, body);
    else this.sendJson(response, body);
  }

  /** Sends an error. Too late for that, the cut connection shows the client that the response is incomplete. Never throws. */
  sendError(response: Response, error: ApiError): void {
    if (response.headersSent) {
      if (!response.writableEnded) response.destroy();
      return;
    }
    try {
      response.statusCode = error.getStatus();
      this.send(response, error.getResponse());
    } catch (failure) {
      this.fail(response, failure);
    }
  }

  /**
   * Must be called when a response cannot be written. Logs the failure, and sends an error by Node's own methods: the one that could not
   * be sent because of its head, else INTERNAL_ERROR. Never throws.
   */
  fail(response: Response, failure: unknown, error = new ApiError(INTERNAL_ERROR)): void {
    this.logger.error(failure, response.req.context);
    // What the handler goes on to write.
    response.on('error', () => undefined);
    // eslint-disable-next-line @typescript-eslint/unbound-method -- they are called with the response as their `this`
    const { write, end } = ServerResponse.prototype;
    Object.assign(response, { write, end });
    try {
      if (response.headersSent) throw failure;
      response.statusCode = error.getStatus();
      this.sendJson(response, prepareError(response, error.getResponse()));
    } catch {
      response.destroy();
    }
  }

  /**
   * Must be called before the head of each response is written. Completes responses that `send` does not write: those
   * of Express's methods, redirects, streams and events.
   */
  beforeHead(response: Response): void {
    const { req: request } = response;
    const { context } = request;
    if (context.answeredAt === undefined) {
      // Express adds a charset, which JSON has not (RFC 8259, section 11).
      if (response.getHeader('content-type') === 'application/json; charset=utf-8')
        response.setHeader('Content-Type', 'application/json');
      this.inFlight.release(context);
      setCaching(response);
      // Closes the connection: the rest of this request would have to be read before the next one.
      if (!isWholeWith(request)) response.setHeader('Connection', 'close');
    }
    const field = fieldOf(response.statusCode, this.challenge);
    if (field !== undefined && !response.hasHeader(field[0])) response.setHeader(...field);
    if (this.server.isDraining) response.setHeader('Connection', 'close');
  }

  private sendJson(response: Response, body: unknown): void {
    const isTagged = response.statusCode === 200 && isRead(response.req) && !response.hasHeader('etag');
    const { text, tag } = jsonTextOf(body, isTagged);
    if (isTagged) response.setHeader('ETag', tag as string);
    this.endUnlessFresh(response, text);
  }

  /** Ends the response; with 304 and no body if the client has this representation already (RFC 9110, section 13). */
  private endUnlessFresh(response: Response, body: string | Buffer): void {
    const isUnchanged = response.statusCode === 200 && isRead(response.req) && isKnown(response);
    if (isUnchanged) {
      response.statusCode = 304;
      response.removeHeader('Content-Type');
      response.removeHeader('Content-Encoding');
    }
    this.end(response, isUnchanged ? undefined : body);
  }

  /**
   * Ends the response. While the server drains, the connection is closed afterwards. If the rest of the request is still
   * arriving, the connection is closed, too, but only after a lingering read (see LINGER_BYTES).
   */
  private end(response: Response, content: string | Buffer | undefined): void {
    const { req: request, statusCode } = response;
    // Neither has content (RFC 9110, sections 15.3.5 and 15.3.6).
    const body = statusCode === 204 || statusCode === 205 ? undefined : content;
    if (statusCode === 204) response.removeHeader('Content-Type');
    const { context } = request;
    context.answeredAt = performance.now();
    this.inFlight.release(context);
    const isWhole = isWholeWith(request);
    // Node adds most by itself, but would keep those of an earlier response that failed. With HTTP/1.0 it adds none.
    const nodeAddsLength =
      isWhole &&
      body !== undefined &&
      request.method !== 'HEAD' &&
      request.httpVersionMinor === 1 &&
      !response.hasHeader('content-length') &&
      !response.hasHeader('transfer-encoding');
    if (!nodeAddsLength && statusCode !== 204 && statusCode !== 304) {
      response.removeHeader('Transfer-Encoding');
      response.setHeader('Content-Length', Buffer.byteLength(body ?? ''));
    }
    if (isWhole) {
      response.end(body);
      if (!request.complete && announcesBody(request))
        dropRest(request, () => request.complete || request.socket.destroy());
      return;
    }
    response.setHeader('Connection', 'close');
    // A client that waits for `100 Continue` sends no body now, and a broken one cannot be read: nothing to linger for.
    const { bodyStage } = context;
    const isEmpty = body === undefined || request.method === 'HEAD';
    if (bodyStage === BODY.CONTINUE_AWAITED || bodyStage === BODY.BROKEN || isEmpty) {
      response.end(body);
      return;
    }
    response.write(body, (error) => {
      if (!error) advance(context, BODY.UNNEEDED);
    });
    dropRest(request, () => response.end());
  }
}

/**
 * Whether the client has this representation already, by weak comparison of tags. Express's `request.fresh` would say no to
 * `Cache-Control: no-cache`, which `fetch` adds to every `If-None-Match`.
 */
function isKnown(response: Response): boolean {
  const { 'if-none-match': tags, 'if-modified-since': since } = response.req.headers;
  if (tags !== undefined) {
    const tag = response.getHeader('etag');
    const opaque = String(tag).replace(/^W\//, '');
    return (
      tag !== undefined && (tags.trim() === '*' || tags.match(/"[^"]*"/g)?.some((known) => known === opaque) === true)
    );
  }
  const lastModified = response.getHeader('last-modified');
  return since !== undefined && typeof lastModified === 'string' && Date.parse(lastModified) <= Date.parse(since);
}

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD';
}

/**
 * Sets the caching fields that the handler has not set. Responses to GET and HEAD may be kept by the client alone, and only used after
 * asking the service. Nothing else may be kept.
 */
function setCaching(response: Response): void {
  const { statusCode } = response;
  const isCacheable = isRead(response.req) && (statusCode === 200 || statusCode === 206 || statusCode === 304);
  if (isCacheable) {
    if (response.hasHeader('vary')) response.vary('Authorization');
    else response.setHeader('Vary', 'Authorization');
  }
  if (!response.hasHeader('cache-control')) {
    response.setHeader('Cache-Control', isCacheable ? 'private, no-cache' : 'no-store');
  }
}

/**
 * Whether nothing of a request must be read before the next one of its connection. Nothing is expected to follow in the chunked body of a
 * GET of which nothing has arrived: some clients send its end in a packet of its own.
 */
function isWholeWith(request: Request): boolean {
  if (request.complete || !announcesBody(request)) return true;
  const { bodyStage } = request.context;
  const mayFollow = bodyStage === BODY.CONTINUE_AWAITED || bodyStage === BODY.BROKEN || request.readableDidRead;
  return (
    request.method === 'GET' &&
    request.headers['content-length'] === undefined &&
    !mayFollow &&
    request.readableLength === 0
  );
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
