import type { Request, Response } from 'express';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { ApiError, UnavailableCause } from '#errors';
import { flag } from '#settings';

export const REQUEST_LOG_SETTINGS = {
  requestInLog: flag(
    'REQUEST_IN_LOG',
    ['true', 'false'],
    parseInt(process.versions.node) >= 24,
    'true: lines that modules log while they serve a request have its id and operation, by AsyncLocalStorage; the default ' +
      'on Node 24 and later, where it costs little. false: only lines to which the code passes `request.context`; the ' +
      'default on Node 20 and 22, where it slows down every promise of the process.',
  ),
};

/** The platform's data about one request, `request.context`: for its log line, metrics and response. */
export class RequestContext {
  /** When the header section had arrived, in ms of `performance.now()`. */
  readonly startedAt = performance.now();
  /** The trace-id of the request's span, which continues the caller's trace; undefined without tracing. */
  traceId: string | undefined;
  /** @internal The time of the request in ms since 1970, for everything that depends on it. Set by ApiKeyGuard. */
  now = 0;
  /** @internal How many fields `Authorization` the request has. */
  authorizations = 0;
  /** When the whole response was handed to the socket, in ms of `performance.now()`. */
  answeredAt: number | undefined;
  /**
   * The operationId, by default the name of the handler method (`OperationRegistry`). ApiKeyGuard sets it, for public routes
   * too. Undefined when no route matched.
   */
  operation: string | undefined;
  /** The name of the client. Set by ApiKeyGuard; undefined on public routes and before the client is known. */
  client: string | undefined;
  /** The id of the client, set together with `client`. */
  clientId: bigint | undefined;
  /** @internal `code` of the Error body; undefined for other responses. */
  errorCode: string | undefined;
  /** @internal Why the response is 503, if the platform knows. */
  unavailableCause: UnavailableCause | undefined;
  /** @internal The client waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1). */
  expectsContinue = false;
  /** @internal The error that ends the request before it is routed. */
  refusal: ApiError | undefined;
  /** @internal The error of a body that the parser refused or that did not arrive in time. */
  bodyError: ApiError | undefined;
  /** @internal The request counts towards MAX_REQUESTS_IN_FLIGHT. */
  isInFlight = false;
  /** @internal The request got 503 because of MAX_REQUESTS_IN_FLIGHT. */
  isRefused = false;
  /** @internal The connection was cut because the client did not read the response, which Node reports as finished. */
  isCut = false;
  /** @internal The whole response was sent before the request had arrived. Its client may close the connection at once. */
  isSentEarly = false;
  /** @internal The connection ended before the client got the whole response. Set when the response is over. */
  isAborted = false;
  /** @internal The response is over: sent, or cut off. */
  isOver = false;
  /** @internal The platform is reading a body that is still arriving, and responds if that fails. */
  isBodyRead = false;

  /** @internal */
  constructor(
    /** The client's `X-Request-Id` if it is well-formed, else a new one. */
    readonly requestId: string,
  ) {}
}

/** Whether the connection ended before the client got the whole response. To be called when the response is over. */
export function isAborted({ context, socket }: Request, response: Response): boolean {
  // Node also reports a response as finished when its connection was destroyed.
  return !context.isSentEarly && (!response.writableFinished || context.isCut || socket.destroyed);
}

/** The header field of the request id, in requests and responses. */
export const REQUEST_ID_HEADER = 'X-Request-Id';

const WELL_FORMED_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The id of a request: the `X-Request-Id` that its client sent, if it is well-formed, else a new one. */
export function requestIdFrom(sent?: string | string[]): string {
  return typeof sent === 'string' && WELL_FORMED_REQUEST_ID.test(sent) ? sent : randomUUID();
}

/** Holds the context of the current request; nothing outside of requests, and if REQUEST_IN_LOG is false. */
export const servedRequest = new AsyncLocalStorage<RequestContext>();

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the way Express offers to extend its request
  namespace Express {
    interface Request {
      /** Set by the platform's HTTP server before Express sees the request. */
      context: RequestContext;
      /** The decoded bytes of the body, for handlers with `@RawBody()` or `@Req()`. */
      rawBody?: Buffer;
    }
  }
}
