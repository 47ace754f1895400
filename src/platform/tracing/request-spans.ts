import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { isTracingSuppressed, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_NETWORK_PROTOCOL_VERSION,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
  ATTR_USER_AGENT_ORIGINAL,
} from '@opentelemetry/semantic-conventions';
import type { Request, Response } from 'express';
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiError } from '../errors/api-error.js';
import type { RequestTracer } from '../server/express-adapter.js';
import { isAborted, type RequestContext } from '../server/requests/request-context.js';

/** Replaces methods other than HTTP's own (semantic conventions of HTTP). */
const OTHER_METHOD = '_OTHER';
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH']);

const propagator = new W3CTraceContextPropagator();
const getter: TextMapGetter<IncomingHttpHeaders> = {
  get: (headers, name) => headers[name],
  keys: (headers) => Object.keys(headers),
};

/** Marks contexts of our own spans: a request may begin in the context of the previous request of its connection. */
const OWN = createContextKey('petstore.own_span');

interface Served {
  readonly span: Span;
  readonly active: Context;
  /** The span belongs to an instrumentation of the application's own SDK, which ends it. */
  readonly isForeign: boolean;
}

/**
 * Makes a span of each request, by the semantic conventions of HTTP: a child of the span in `traceparent`, from the end of
 * the header section to the end of the answer. It contains no query, body or key, and no header fields but `Host` and
 * `User-Agent`.
 */
export class RequestSpans implements RequestTracer {
  private readonly served = new WeakMap<RequestContext, Served>();

  /** @param mayBeForeign whether an instrumentation of the application's own SDK may have made the span of a request */
  constructor(
    private readonly tracer: Tracer,
    private readonly mayBeForeign: boolean,
  ) {}

  begin(request: Request): void {
    // The instrumentation ignores this request, for instance a health check.
    if (this.mayBeForeign && isTracingSuppressed(context.active())) return;
    const served = (this.mayBeForeign ? foreignSpan() : undefined) ?? this.start(request);
    request.context.traceId = served.span.spanContext().traceId;
    this.served.set(request.context, served);
    // The instrumentation's listener of `close`, registered before, ends the span.
    if (served.isForeign) {
      request.res?.prependOnceListener('close', () => describe(served.span, request, request.res as Response));
    }
  }

  run(request: Request, serve: () => void): void {
    const served = this.served.get(request.context);
    if (served === undefined) serve();
    else context.with(served.active, serve);
  }

  answered(request: Request, response: Response): void {
    const served = this.served.get(request.context);
    if (served === undefined || served.isForeign) return;
    describe(served.span, request, response);
    served.span.end();
  }

  refused({ definition: { code, status } }: ApiError, requestId: string): void {
    const attributes = {
      [ATTR_HTTP_REQUEST_METHOD]: OTHER_METHOD,
      [ATTR_HTTP_RESPONSE_STATUS_CODE]: status,
      'petstore.request_id': requestId,
      'petstore.error_code': code,
    };
    this.tracer.startSpan('HTTP', { kind: SpanKind.SERVER, attributes, root: true }).end();
  }

  private start(request: Request): Served {
    const parent = propagator.extract(ROOT_CONTEXT, request.headers, getter);
    const method = methodOf(request);
    const name = method === OTHER_METHOD ? 'HTTP' : method;
    const span = this.tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: attributesOf(request) }, parent);
    return { span, active: trace.setSpan(parent, span).setValue(OWN, true), isForeign: false };
  }
}

function foreignSpan(): Served | undefined {
  const active = context.active();
  const span = trace.getSpan(active);
  if (span === undefined || active.getValue(OWN) !== undefined) return undefined;
  const isSampled = (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
  // A sampled span that no longer records belongs to the previous request of the connection. A span that is not sampled
  // never records; making our own instead would repeat the sampling decision.
  return isSampled && !span.isRecording() ? undefined : { span, active, isForeign: true };
}

/** Adds the attributes of the answer to the span of a request. */
function describe(span: Span, request: Request, response: Response): void {
  if (!span.isRecording()) return;
  const { requestId, operation, client, errorCode } = request.context;
  const { headersSent, statusCode } = response;
  const route = routeOf(request);
  span.setAttributes({
    [ATTR_HTTP_ROUTE]: route,
    [ATTR_HTTP_RESPONSE_STATUS_CODE]: headersSent ? statusCode : undefined,
    'petstore.request_id': requestId,
    'petstore.operation': operation,
    'petstore.client': client,
    'petstore.error_code': errorCode,
    'petstore.aborted': isAborted(request, response) || undefined,
  });
  if (route !== undefined) span.updateName(`${methodOf(request)} ${route}`);
  if (headersSent && statusCode >= 500) {
    span.setAttribute(ATTR_ERROR_TYPE, errorCode ?? String(statusCode));
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
}

function attributesOf(request: Request): Attributes {
  const { headers, httpVersion, method, url } = request;
  const [, address, port] = /^(.*?)(?::(\d{1,5}))?$/.exec(headers.host ?? '') ?? [];
  return {
    [ATTR_HTTP_REQUEST_METHOD]: methodOf(request),
    'http.request.method_original': KNOWN_METHODS.has(method) ? undefined : method,
    [ATTR_URL_PATH]: pathOf(url),
    [ATTR_URL_SCHEME]: 'http',
    [ATTR_SERVER_ADDRESS]: address || undefined,
    [ATTR_SERVER_PORT]: port === undefined ? undefined : Number(port),
    [ATTR_NETWORK_PROTOCOL_VERSION]: httpVersion,
    [ATTR_USER_AGENT_ORIGINAL]: headers['user-agent'],
  };
}

/** Only the path of a target, because its absolute form may contain a password. */
function pathOf(target: string): string | undefined {
  return target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1)[0] || '/';
}

function methodOf({ method }: Request): string {
  return KNOWN_METHODS.has(method) ? method : OTHER_METHOD;
}

/** The route that matched, with its parameters in braces; undefined without a match. */
function routeOf({ route, baseUrl }: Request): string | undefined {
  const path: unknown = (route as { path?: unknown } | undefined)?.path;
  return typeof path === 'string' ? `${baseUrl}${path}`.replace(/:(\w+)/g, '{$1}') : undefined;
}
