import { type RequestMethod, StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Express, type Request, type Response } from 'express';
import type { Server } from 'node:http';
import {
  ApiError,
  BAD_REQUEST,
  EXPECTATION_FAILED,
  INTERNAL_ERROR,
  ROUTE_NOT_FOUND,
  toApiError,
  withErrorBody,
} from '#errors';
import { guardHeads, writeOwnJson } from './response-methods.js';
import { activeTrace } from '#runtime';
import { BodyReader } from './body-reader.js';
import { Connections } from './connections/connections.js';
import { drain } from './connections/drain.js';
import { answerParserErrors } from './connections/parser-errors.js';
import { Replies } from './replies/replies.js';
import { checkRequest, hasJustArrived, normalTarget } from './requests/request-checks.js';
import {
  advance,
  BODY,
  isAborted,
  REQUEST_ID_HEADER,
  RequestContext,
  requestIdFrom,
  servedRequest,
} from './requests/request-context.js';
import { RequestsInFlight } from './requests/requests-in-flight.js';
import { LARGE_PAGE_ITEMS, LISTEN_BACKLOG } from './requests/server-limits.js';
import { type ClientId, Turns } from './requests/turns.js';
import { asMiddleware, takeMiddleware } from './express.internals.js';
import { createHttpServer, type HttpConfig } from './http-server.js';
import { holdRequests, REQUEST_EVENTS, type RequestEvent } from './node-http.internals.js';
import { answerBehindCors, answerUnmatchedRoutes } from './unmatched-routes.js';

/** Receives every response, for the log and the metrics. Its methods must not throw. */
export interface RequestObserver {
  /** The response is over; it is aborted if the connection ended before the client got the whole of it. */
  answered(request: Request, response: Response, aborted: boolean): void;
  /** Node's parser refused bytes that are no request; `parser-errors.ts` has responded. */
  refused(error: ApiError, requestId: string): void;
}

/**
 * Connects Nest to Express and to the HTTP server of this service. A request passes these steps:
 *
 * 1. `enter`: `request.context` and `X-Request-Id` are set.
 * 2. `connections.ts`: requests of one connection are served one after the other, those of all clients in turn (`turns.ts`).
 * 3. `request-checks.ts` and `requests-in-flight.ts`: an invalid request gets 400 or 414, one too many gets 503.
 * 4. Express calls Nest's handler of the route. `BodyGuard` reads the body behind the key check. Without a route,
 *    `unmatched-routes.ts` responds.
 * 5. `replies.ts` writes the response, or completes one that a handler writes itself.
 */
export class PlatformExpressAdapter extends ExpressAdapter {
  /** The client of a request if its API key is in memory. Set by AuthModule. */
  knownClient: (request: Request) => ClientId = () => undefined;
  /** Set by RequestLog. */
  observer: RequestObserver | undefined;
  private readonly turns = new Turns();
  private readonly inFlight: RequestsInFlight;
  /** True while draining: requests in flight finish, and each response closes its connection. */
  isDraining = false;
  /** Reads the bodies of requests as their handlers take them. */
  readonly bodies: BodyReader;
  private connections!: Connections;
  private replies!: Replies;
  /** The origins whose pages may read responses; undefined without CORS. */
  private origins: readonly unknown[] | undefined;
  /** Puts back Nest's middleware that calls request and response hooks. Requests pass it only if there is a hook. */
  private readonly addHooks: () => void;

  private readonly onClose: (this: Response) => void;

  constructor(private readonly config: HttpConfig) {
    const app = express();
    app.set('case sensitive routing', true);
    app.set('strict routing', true);
    app.disable('x-powered-by');
    app.disable('etag');
    super(app);
    this.addHooks = takeMiddleware(app);
    writeOwnJson(app);
    this.inFlight = new RequestsInFlight(config.maxRequestsInFlight, this.clientOf);
    this.bodies = new BodyReader(this.inFlight, this.turns);
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the listener's own `this` is the response
    const adapter = this;
    this.onClose = function () {
      const aborted = isAborted(this.req, this);
      adapter.inFlight.release(this.req.context);
      adapter.connections.leave(this.req, this);
      if (!this.req.context.isForeign) adapter.observer?.answered(this.req, this, aborted);
    };
    guardHeads(
      app,
      (response) => adapter.replies.beforeHead(response),
      (response, failure) => adapter.replies.fail(response, failure, response.req.context.errorBody?.error),
    );
  }

  override setOnRequestHook(...hook: Parameters<ExpressAdapter['setOnRequestHook']>): void {
    this.addHooks();
    super.setOnRequestHook(...hook);
  }

  override setOnResponseHook(...hook: Parameters<ExpressAdapter['setOnResponseHook']>): void {
    this.addHooks();
    super.setOnResponseHook(...hook);
  }

  get load(): { requests: number; connections: number; droppedConnections: number } {
    const { open, dropped } = this.connections;
    return { requests: this.inFlight.count, connections: open.size, droppedConnections: dropped };
  }

  /** As in Nest, with LISTEN_BACKLOG. The last argument is Nest's callback. */
  override listen(port: string | number, ...rest: unknown[]): Server {
    const parameters = [port, ...rest.slice(0, -1), LISTEN_BACKLOG, ...rest.slice(-1)];
    return (this.httpServer as Server).listen(...(parameters as Parameters<Server['listen']>));
  }

  override beforeClose(): void {
    this.isDraining = true;
  }

  /** Drains the server. Resolves when no connection is open. */
  override async close(): Promise<void> {
    const server = this.httpServer as Server;
    if (server.listening) await drain(server, this.connections, this.config);
  }

  /** As in Nest; `preflightContinue` must be true, because `unmatched-routes.ts` serves preflight requests. */
  override enableCors(options: Parameters<ExpressAdapter['enableCors']>[0]): void {
    super.enableCors(options);
    this.origins ??= [];
    if (options && 'origin' in options && Array.isArray(options.origin)) this.origins = options.origin;
    const app = this.getInstance<Express>();
    app.use(answerBehindCors(app, this.replies));
  }

  override initHttpServer(): void {
    const app = this.getInstance<Express>();
    const server = createHttpServer(app, this.config);
    this.connections = new Connections(server, this.config, this.turns, this.clientOf);
    const { json, send } = app.response;
    this.replies = new Replies(this.inFlight, this, `Bearer realm="${this.config.product.name}"`, { json, send });
    this.httpServer = server;

    answerParserErrors(server, this.connections, {
      abandon: (request, error) => this.sendError(request.res as Response, error),
      corsFieldsFor: (origin) => {
        if (!this.origins?.includes(origin)) return this.origins === undefined ? [] : ['Vary: Origin'];
        return [`Access-Control-Allow-Origin: ${origin}`, 'Access-Control-Expose-Headers: *', 'Vary: Origin'];
      },
      refused: (error, requestId) => this.observer?.refused(error, requestId),
    });
    holdRequests(server, (event, request, response, emit) =>
      this.enter(event, request as Request, response as Response, emit),
    );
    for (const event of REQUEST_EVENTS)
      server.on(event, (request, response) => this.serve(event, request as Request, response as Response));
  }

  /** @param emit calls the listeners of the server: `serve`, unless one of a module takes the request before */
  private enter(event: RequestEvent, request: Request, response: Response, emit: () => void): void {
    const context = new RequestContext(requestIdFrom(request.headers['x-request-id']));
    request.context = context;
    if (event === 'checkContinue') advance(context, BODY.CONTINUE_AWAITED);
    const begin = (): void => {
      response.on('close', this.onClose);
      context.isForeign = true;
      emit();
    };
    // A pipelined request begins at the end of the one before, whose span is active then.
    this.connections.arrive(request, response, activeTrace?.bind(begin) ?? begin);
  }

  private serve(event: RequestEvent, request: Request, response: Response): void {
    const { context } = request;
    // A listener of a module has answered, and has not kept the request from others.
    if (response.headersSent) return;
    context.isForeign = false;
    context.traceId = activeTrace?.traceId();
    // Express sets it too, but some responses are sent before Express is reached.
    request.res = response;
    response.setHeader(REQUEST_ID_HEADER, context.requestId);
    response.setHeader('X-Content-Type-Options', 'nosniff');
    const error = event === 'checkExpectation' ? new ApiError(EXPECTATION_FAILED) : this.refusalOf(request, response);
    // Wait for the parser: if the body is already here the connection survives, and if the parser fails, its error is
    // sent instead.
    if (error) process.nextTick(() => this.refuse(request, response, context.bodyError ?? error));
    else if (this.config.requestInLog) servedRequest.run(context, () => this.callExpress(request, response));
    else this.callExpress(request, response);
  }

  private callExpress(request: Request, response: Response): void {
    // Express calls this function if no layer responded: for a request target without a path.
    this.getInstance<Express>()(request, response, (error?: unknown) => {
      const other = error ? toApiError(error) : new ApiError(BAD_REQUEST, 'The request target has no path.');
      const answer = request.context.refusal ?? other;
      // A filter of a module for all errors has failed.
      if (answer.definition === INTERNAL_ERROR) this.replies.fail(response, error);
      else this.sendError(response, answer);
    });
  }

  /** Serves a request that Express has not routed; with CORS by Express, which adds the header fields. */
  private refuse(request: Request, response: Response, error: ApiError): void {
    request.context.refusal = error;
    if (this.origins) this.callExpress(request, response);
    else this.sendError(response, error);
  }

  /** The error of a request that is refused before routing; undefined when the request is in flight. */
  private refusalOf(request: Request, response: Response): ApiError | undefined {
    const error = checkRequest(request);
    if (error) {
      // Client and server may disagree on where this request ends, so nothing after it is read (request smuggling).
      response.setHeader('Connection', 'close');
      return error;
    }
    // Before everything that looks at the path.
    if (request.url.includes('%') || !request.url.startsWith('/')) request.url = normalTarget(request.url);
    return this.inFlight.admit(request);
  }

  private readonly clientOf = (request: Request): ClientId => request.context.clientId ?? this.knownClient(request);

  /** Registers nothing: `BodyGuard` reads bodies, behind the key check, and keeps the bytes where `@RawBody()` asks. */
  override registerParserMiddleware(): void {}

  /** As in Nest; middleware of one method is no route of the service. */
  override createMiddlewareFactory(method: RequestMethod): ReturnType<ExpressAdapter['createMiddlewareFactory']> {
    const register = super.createMiddlewareFactory(method);
    return (path, callback) => asMiddleware(this.getInstance<Express>(), () => register(path, callback) as unknown);
  }

  override setNotFoundHandler(): void {
    this.use(answerUnmatchedRoutes(this.getInstance<Express>(), this.replies));
  }

  /** As in Nest; a path that Express cannot decode is that of no resource. Express sets the status of such an error. */
  override mapException(error: unknown): unknown {
    return error instanceof URIError && 'status' in error
      ? new ApiError(ROUTE_NOT_FOUND, 'The path is not valid percent-encoded UTF-8.')
      : super.mapException(error);
  }

  override setHeader(response: Response, name: string, value: string): Response {
    // Express's `set` appends a charset to a media type, which JSON has not (RFC 8259, section 11).
    return /^application\/([\w.-]+\+)?json$/i.test(value) ? response.setHeader(name, value) : response.set(name, value);
  }

  /** Responds with an error, or cuts a response that has begun. */
  sendError(response: Response, error: ApiError): void {
    const send = (): void => this.replies.sendError(response, error);
    // With the whole request the connection survives.
    if (hasJustArrived(response.req)) setImmediate(send);
    else send();
  }

  /** Returns a promise if a large page waits for its client's turn. */
  override reply(response: Response, value: unknown, statusCode?: number): unknown {
    if (statusCode !== undefined) response.statusCode = statusCode;
    const { toSent } = response.req.context;
    const body = toSent === undefined ? value : toSent(value, response);
    if (Array.isArray(body) && body.length > LARGE_PAGE_ITEMS && !this.turns.mayBegin()) {
      return this.turns.run(response.req.context.clientId, () => this.replies.send(response, body));
    }
    if (!(body instanceof StreamableFile)) return this.replies.send(response, body);
    return super.reply(
      response,
      withErrorBody(body, (error) => this.sendError(response, error)),
    );
  }
}
