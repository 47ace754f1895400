import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { ApiError, ErrorBody } from '#errors';
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

/**
 * How the body of a request arrives. Stages may be left out, and none comes again.
 *
 * - UNREAD: no body, one that nobody has asked for, or one that code of a module reads.
 * - CONTINUE_AWAITED: the client sends the body after `100 Continue` (RFC 9110, section 10.1.1); CONTINUED: that was sent.
 * - READ: the platform reads the body, and responds if that fails.
 * - BROKEN: Node's parser refused the body, or it did not arrive in time. The error is `context.bodyError`.
 * - UNNEEDED: the whole response was sent before the body had arrived. The client may close the connection at once.
 */
export const BODY = { UNREAD: 0, CONTINUE_AWAITED: 1, CONTINUED: 2, READ: 3, BROKEN: 4, UNNEEDED: 5 } as const;
type BodyStage = (typeof BODY)[keyof typeof BODY];

/**
 * The platform's data about one request, `request.context`: for its log line, metrics and response. Each member has one writer;
 * code of modules may read those that are not internal.
 */
export class RequestContext {
  /** When the header section had arrived, in ms of `performance.now()`. */
  readonly startedAt = performance.now();
  /**
   * When the whole response was handed to the socket, in ms of `performance.now()`. Set by `Replies`; undefined until then, and for
   * responses that a handler writes itself.
   */
  answeredAt: number | undefined;
  /** The trace-id of the request's span, which continues the caller's trace. Set by the HTTP server; undefined without tracing. */
  traceId: string | undefined;
  /**
   * The operationId, by default the name of the handler method (`OperationRegistry`). ApiKeyGuard sets it, for public routes
   * too. Undefined when no route matched.
   */
  operation: string | undefined;
  /** @internal Whether an Error body has the faults of the input. Set together with `operation`. */
  sendsFaults = false;
  /** @internal What the handler's decorators make of a body to be sent. Set together with `operation`. */
  toSent: ((body: unknown, response: Response) => unknown) | undefined;
  /** The name of the client. Set by ApiKeyGuard; undefined on public routes and before the client is known. */
  client: string | undefined;
  /** The id of the client, set together with `client`. */
  clientId: bigint | undefined;
  /** @internal The time of the request in ms since 1970, for everything that depends on it. Set by ApiKeyGuard. */
  now = 0;
  /** @internal The Error body, for log, metrics and spans. Set by `Replies`; undefined for other responses. */
  errorBody: ErrorBody | undefined;
  /** @internal Why the request is not served: it is invalid, or gets no place. Set by the HTTP server, as are the next two. */
  refusal: ApiError | undefined;
  /** @internal Whether a listener of a module has taken the request before the platform: what it answers is its own. */
  isForeign = false;
  /** @internal Whether the request has a place in flight. Written by `RequestsInFlight`. */
  isInFlight = false;
  /** @internal How the body arrives. Written by `advance`. */
  bodyStage: BodyStage = BODY.UNREAD;
  /** @internal The error of a body whose stage is BROKEN. */
  bodyError: ApiError | undefined;

  /** @internal */
  constructor(
    /** The client's `X-Request-Id` if it is well-formed, else a new one. */
    readonly requestId: string,
  ) {}
}

/** Sets the stage of a request's body, unless it has a later one. */
export function advance(context: RequestContext, stage: BodyStage): void {
  if (stage > context.bodyStage) context.bodyStage = stage;
}

/** The HTTP request of a call; undefined for a message of another transport, and for a call by Nest's ExternalContextCreator. */
export function servedRequestOf(host: ArgumentsHost): Request | undefined {
  const request = host.getType() === 'http' ? host.getArgByIndex<Request | undefined>(0) : undefined;
  return request?.context instanceof RequestContext ? request : undefined;
}

/** Whether the connection ended before the client got the whole response. To be called as soon as the response is over. */
export function isAborted({ context, socket }: Request, response: Response): boolean {
  // Node also reports a response as finished when its connection was destroyed.
  return context.bodyStage !== BODY.UNNEEDED && (!response.writableFinished || socket.destroyed);
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
