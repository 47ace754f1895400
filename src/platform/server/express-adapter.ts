import { Logger, StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { parse as parseQuery } from 'node:querystring';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../config.js';
import { ApiError } from '../errors/api-error.js';
import { ErrorBody } from '../errors/error-body.js';
import {
  BAD_REQUEST,
  EXPECTATION_FAILED,
  METHOD_NOT_ALLOWED,
  ROUTE_NOT_FOUND,
  URI_TOO_LONG,
} from '../errors/error-catalogue.js';
import { toApiError } from '../errors/error.filter.js';
import { Connections, OVERLOADED } from './connections.js';
import { matchesEntityTag } from '../json/entity-tag.js';
import {
  LINGER_BYTES,
  LINGER_MS,
  MAX_HEADER_BYTES,
  MAX_REQUESTS_PER_CONNECTION,
  MAX_URI_LENGTH,
  TIMEOUT_CHECK_INTERVAL_MS,
} from './server-limits.js';
import { JsonBody } from '../json/json-body.js';
import { createMessageClasses } from '../fast-paths/express-prototypes.js';
import { answerParserErrors } from './parser-errors.js';
import { announcesBody, readJsonBody } from './request-body.js';
import { REQUEST_ID_HEADER, RequestContext, requestIdFrom } from './request-context.js';
import { countHeader } from './header-fields.js';

/** Told of every answer, for the log and the metrics. Must not throw. */
export interface RequestObserver {
  /** A response is over: sent, or cut off by a client that went away (`response.writableFinished` tells which). */
  answered(request: Request, response: Response): void;
  /** Bytes that were no request got an error below the framework. */
  refused(error: ApiError, requestId: string): void;
}

/**
 * Nest on Express, with the HTTP server and the answers of this service: limits and time-outs, lossless JSON, entity
 * tags, the Error body for what no route serves, and a body that is read only when a handler asks for it
 * (`request.body` is a promise; `@Body()` awaits it behind guards and interceptors).
 */
export class PlatformExpressAdapter extends ExpressAdapter {
  private observer: RequestObserver | undefined;
  private connections!: Connections;
  private readonly hooksLayer: Express['router']['stack'][number] | undefined;
  private drainingSince: number | undefined;
  private readonly log = new Logger(PlatformExpressAdapter.name);

  /** Listener of every response; `this` is the response. */
  private readonly onClose: (this: Response) => void;

  constructor(private readonly config: Config) {
    const app = express();
    app.set('case sensitive routing', true);
    app.set('strict routing', true);
    // All parameters: those beyond Node's default of a thousand must not pass unseen. The length of the URI bounds them.
    app.set('query parser', (text: string) => parseQuery(text, '&', '=', { maxKeys: 0 }));
    app.disable('x-powered-by');
    app.disable('etag');
    super(app);
    [this.hooksLayer] = app.router.stack.splice(0, 1);
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the listener's own `this` is the response
    const adapter = this;
    this.onClose = function () {
      adapter.observer?.answered(this.req, this);
      adapter.connections.leave(this.req, this);
    };
    Object.defineProperty(app.request, 'body', { configurable: true, get: this.lazyBody() });
  }

  /** Registers the one observer of all answers. */
  observe(observer: RequestObserver): void {
    this.observer = observer;
  }

  /** Whether the server is on its way out: it finishes what it has, and every answer closes its connection. */
  get isDraining(): boolean {
    return this.drainingSince !== undefined;
  }

  override beforeClose(): void {
    this.drainingSince ??= performance.now();
  }

  /**
   * Goes on serving for `shutdownDelayMs`, then stops accepting connections, waits for the requests in flight, and after
   * `shutdownTimeoutMs` cuts those that are left. Resolves when no connection is open.
   *
   * An idle connection is kept until `shutdownLingerMs` after `beforeClose`, for its client may be sending a request at this
   * very moment: that one is answered, and told that it was the last.
   */
  override async close(): Promise<void> {
    const server = this.httpServer as Server;
    if (!server.listening) {
      return;
    }
    await sleep(this.config.shutdownDelayMs);
    // Not `server.close()`, which closes idle connections at once and looks after time-outs no longer.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
    const deadline = setTimeout(() => this.cut(server), this.config.shutdownTimeoutMs);
    const lingered = performance.now() - (this.drainingSince ?? performance.now());
    const stop = new AbortController();
    const linger = sleep(Math.max(0, this.config.shutdownLingerMs - lingered), undefined, { signal: stop.signal });
    await Promise.race([closed, linger]);
    stop.abort();
    this.connections.closeIdle();
    await closed;
    clearTimeout(deadline);
    server.close();
  }

  private cut(server: Server): void {
    const operations = new Map<string, number>();
    const requests = this.connections.unanswered();
    for (const { context, method } of requests) {
      const name = context.operation ?? `${method} without an operation`;
      operations.set(name, (operations.get(name) ?? 0) + 1);
    }
    const names = [...operations].map(([name, count]) => `${name} (${count})`).join(', ') || 'none had begun';
    this.log.warn(
      `Cutting ${requests.length} requests that did not finish within ${this.config.shutdownTimeoutMs} ms: ${names}.`,
    );
    server.closeAllConnections();
  }

  override setOnRequestHook(...hook: Parameters<ExpressAdapter['setOnRequestHook']>): void {
    super.setOnRequestHook(...hook);
    this.callHooks();
  }

  override setOnResponseHook(...hook: Parameters<ExpressAdapter['setOnResponseHook']>): void {
    super.setOnResponseHook(...hook);
    this.callHooks();
  }

  /** Puts the layer back that calls hooks; without hooks it would be a detour of every request. */
  private callHooks(): void {
    const { stack } = this.getInstance<Express>().router;
    if (this.hooksLayer && !stack.includes(this.hooksLayer)) stack.unshift(this.hooksLayer);
  }

  override initHttpServer(): void {
    const app = this.getInstance<Express>();
    const server = createServer({
      ...(this.config.fastPaths.includes('express-prototypes') && createMessageClasses(app)),
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: this.config.headersTimeoutMs,
      requestTimeout: this.config.requestTimeoutMs,
      keepAliveTimeout: this.config.keepAliveTimeoutMs,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      // Checked below instead, where the answer can have an Error body.
      requireHostHeader: false,
      noDelay: true,
    });
    server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
    answerParserErrors(server, (error, requestId) => this.observer?.refused(error, requestId));

    const connections = new Connections(server, this.config);
    const serve = (request: Request, response: Response, expectsContinue: boolean): void => {
      this.begin(request, response);
      request.context.expectsContinue = expectsContinue;
      let refusal = refusalOf(request);
      if (refusal) {
        // Whoever sends this may see the end of the request elsewhere than this server: nothing behind it is believed.
        response.shouldKeepAlive = false;
      } else if (!connections.admits(request, response)) {
        refusal = OVERLOADED;
      }
      if (refusal) {
        // When the parser is through with what has arrived: a body that is there need not cost the connection, and what the
        // parser itself refuses has its own answer.
        process.nextTick(() => this.replyError(response, refusal));
      } else {
        // Express calls back when no layer answered, which only a target without a path can cause.
        app(request, response, (error?: unknown) =>
          this.replyError(
            response,
            error ? toApiError(error) : new ApiError(BAD_REQUEST, 'The request target has no path.'),
          ),
        );
      }
    };
    const arrive = (request: Request, response: Response, expectsContinue: boolean): void =>
      connections.arrive(request, response, () => serve(request, response, expectsContinue));
    server.on('request', (request: Request, response: Response) => arrive(request, response, false));
    server.on('checkContinue', (request: Request, response: Response) => arrive(request, response, true));
    server.on('checkExpectation', (request: Request, response: Response) => {
      connections.arrive(request, response, () => {
        this.begin(request, response);
        this.replyError(response, new ApiError(EXPECTATION_FAILED, 'Expect may only be 100-continue.'));
      });
    });
    this.connections = connections;
    this.httpServer = server;
  }

  private begin(request: Request, response: Response): void {
    request.context = new RequestContext(requestIdFrom(request.headers['x-request-id']));
    // Express sets it too, but an answer can be needed before Express is reached.
    request.res = response;
    response.setHeader(REQUEST_ID_HEADER, request.context.requestId);
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.on('close', this.onClose);
  }

  /** A getter of `request.body`: a promise of it, which begins to read it. */
  private lazyBody(): (this: Request) => Promise<unknown> {
    const read = (request: Request): Promise<unknown> => {
      const readBody = (): Promise<unknown> => readJsonBody(request, request.res as Response, this.config.maxBodyBytes);
      return request.complete ? readBody() : this.connections.waitFor(request, readBody);
    };
    return function (this: Request): Promise<unknown> {
      return this.context.readBodyOnce(() => read(this));
    };
  }

  /** What no route serves: 404, or for a path that other methods serve 405, and OPTIONS its `Allow`. */
  override setNotFoundHandler(): void {
    this.use((request: Request, response: Response, next: NextFunction) => {
      const allowed = allowedMethods(this.getInstance<Express>(), request.path);
      if (allowed.length === 0) {
        next(new ApiError(ROUTE_NOT_FOUND, `No resource has the path ${request.path}`));
      } else if (request.method === 'OPTIONS') {
        response.setHeader('Allow', allowed.join(', '));
        response.statusCode = 204;
        this.send(response, undefined);
      } else {
        const message = `${request.method} is not supported here; use ${allowed.join(', ')}.`;
        next(new ApiError(METHOD_NOT_ALLOWED, message, { Allow: allowed.join(', ') }));
      }
    });
  }

  override status(response: Response, statusCode: number): Response {
    response.statusCode = statusCode;
    return response;
  }

  override setHeader(response: Response, name: string, value: string): Response {
    // Not Express's `set`, which appends a charset to a Content-Type.
    return response.setHeader(name, value);
  }

  override reply(response: Response, body: unknown, statusCode?: number): unknown {
    if (statusCode !== undefined) {
      response.statusCode = statusCode;
    }
    if (body instanceof StreamableFile) {
      return super.reply(response, body);
    }
    if (body === undefined) {
      return this.send(response, undefined);
    }
    if (typeof body === 'string' || Buffer.isBuffer(body)) {
      if (!response.hasHeader('Content-Type')) {
        response.setHeader('Content-Type', 'text/plain; charset=utf-8');
      }
      return this.send(response, body);
    }
    response.setHeader('Content-Type', 'application/json');
    const { req: request } = response;
    if (body instanceof ErrorBody) {
      request.context.errorCode = body.code;
    }
    const json = body instanceof JsonBody ? body : JsonBody.of(body);
    if (response.statusCode !== 200 || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.setHeader('Cache-Control', 'no-store');
      return this.send(response, json.text);
    }
    if (response.hasHeader('Vary')) {
      response.vary('Authorization');
    } else {
      response.setHeader('Vary', 'Authorization');
    }
    if (!response.hasHeader('Cache-Control')) {
      response.setHeader('Cache-Control', 'private, no-cache');
    }
    const tag = json.entityTag;
    response.setHeader('ETag', tag);
    const ifNoneMatch = request.headers['if-none-match'];
    if (ifNoneMatch !== undefined && matchesEntityTag(ifNoneMatch, tag)) {
      response.statusCode = 304;
      response.removeHeader('Content-Type');
      return this.send(response, undefined);
    }
    return this.send(response, json.text);
  }

  private replyError(response: Response, error: ApiError): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    for (const [name, value] of Object.entries(error.headers)) {
      response.setHeader(name, value);
    }
    this.reply(response, error.body(), error.definition.status);
  }

  /** Ends the response; lingers when the rest of the request is still on its way. */
  private send(response: Response, body: string | Buffer | undefined): void {
    const { req: request } = response;
    const { context } = request;
    context.answeredAt = performance.now();
    this.connections.release(context);
    if (this.isDraining) {
      response.shouldKeepAlive = false;
    }
    const isWhole = request.complete || !announcesBody(request);
    // Node itself adds the length of what it is given whole, if it sends that, and to who could also take it in chunks. A
    // length that is there already may be another answer's, which could not be sent.
    const isLengthAdded =
      isWhole &&
      request.method !== 'HEAD' &&
      response.useChunkedEncodingByDefault &&
      !response.hasHeader('Content-Length');
    if (body !== undefined && !isLengthAdded) {
      response.setHeader('Content-Length', Buffer.byteLength(body));
    } else if (body === undefined && response.statusCode !== 204 && response.statusCode !== 304) {
      response.setHeader('Content-Length', 0);
    }
    if (isWhole) {
      response.end(body);
      return;
    }
    response.setHeader('Connection', 'close');
    if (context.expectsContinue || body === undefined) {
      // The client waits for our word before it sends the body; this is the word.
      response.end(body);
      return;
    }
    response.write(body);
    dropRest(request, () => response.end());
  }
}

/** Reads and drops the rest of a request, within limits. */
function dropRest(request: IncomingMessage, done: () => void): void {
  let bytes = 0;
  const finish = (): void => {
    clearTimeout(timer);
    request.off('data', count).off('end', finish).off('close', finish);
    done();
  };
  const count = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > LINGER_BYTES) finish();
  };
  const timer = setTimeout(finish, LINGER_MS);
  request.on('data', count).on('end', finish).on('close', finish).resume();
}

/** What is refused before any route is looked at. */
function refusalOf(request: IncomingMessage): ApiError | undefined {
  if (request.url !== undefined && request.url.length > MAX_URI_LENGTH) {
    return new ApiError(URI_TOO_LONG, `The request target must not be longer than ${MAX_URI_LENGTH} characters.`);
  }
  if (request.httpVersionMajor !== 1) {
    return new ApiError(BAD_REQUEST, 'The request is not valid HTTP/1.1.');
  }
  // RFC 9112, section 6.1. Node's parser has made sure that `chunked` is the last coding, and that there is no length.
  const coding = request.headers['transfer-encoding'];
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || request.httpVersion !== '1.1')) {
    return new ApiError(BAD_REQUEST, 'The one transfer coding is chunked, in HTTP/1.1.');
  }
  // RFC 9112, section 3.2
  if (request.httpVersion === '1.1' && countHeader(request, 'host') !== 1) {
    return new ApiError(BAD_REQUEST, 'HTTP/1.1 requires exactly one Host header field.');
  }
  return undefined;
}

/** Methods that the routes of a path serve, HEAD and OPTIONS included; empty when no route has the path. */
function allowedMethods(app: Express, path: string): string[] {
  const layers = app.router.stack as unknown as {
    match(path: string): unknown;
    route?: { methods: Record<string, boolean> };
  }[];
  const methods = new Set<string>();
  for (const layer of layers) {
    if (layer.route && layer.match(path)) {
      Object.keys(layer.route.methods).forEach((method) => methods.add(method.toUpperCase()));
    }
  }
  if (methods.size > 0) {
    methods.add('OPTIONS');
  }
  if (methods.has('GET')) {
    methods.add('HEAD');
  }
  return [...methods].sort();
}
