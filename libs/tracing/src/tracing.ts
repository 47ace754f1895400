import { context, type Span, trace } from '@opentelemetry/api';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { NodeSDK, resources } from '@opentelemetry/sdk-node';
import type { Request, Response } from 'express';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAborted } from '#edge';
import { setActiveTrace } from '#runtime';

/** Time in ms that the last spans have to reach the collector; part of the time that modules have to close. */
const FLUSH_TIMEOUT_MS = 1_500;

/** Longest value in a span in characters: clients choose some values, and spans wait in memory. */
const MAX_VALUE_LENGTH = 1_024;

/**
 * Starts OpenTelemetry's SDK, which reads all variables `OTEL_*` itself, with its instrumentations of `http` and `pg`, and returns the
 * function that stops it. Only spans leave the process: metrics are at /metrics, and the log is on standard output.
 */
export function startSdk(product: string): () => Promise<void> {
  setActiveTrace({ traceId, bind: (work) => context.bind(context.active(), work) });
  const sdk = new NodeSDK({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
    resource: resources.resourceFromAttributes({ 'service.name': product, 'process.pid': process.pid }),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [
      new HttpInstrumentation({
        // Queries may contain what clients keep secret.
        startIncomingSpanHook: () => ({ 'url.query': undefined }),
        applyCustomAttributesOnSpan: (span, request, response) => {
          if ('context' in request) describe(span, product, request as Request, response as unknown as Response);
        },
      }),
      new PgInstrumentation({ requireParentSpan: true, ignoreConnectSpans: true }),
    ],
  });
  sdk.start();
  // The instrumentations listen to `require`.
  const require = createRequire(import.meta.url);
  for (const name of ['http', 'https', 'pg']) require(name);
  syncBuiltinESMExports();
  // Sends the waiting spans. A collector that does not take them delays the stop by FLUSH_TIMEOUT_MS at most.
  return async () => {
    const sent = sdk.shutdown().catch(() => undefined);
    await Promise.race([sent, sleep(FLUSH_TIMEOUT_MS, undefined, { ref: false })]);
  };
}

function traceId(): string | undefined {
  const span = trace.getActiveSpan();
  // A span that has ended belongs to an earlier request of the connection.
  return span?.isRecording() ? span.spanContext().traceId : undefined;
}

/** Names the span of a request by its route, and adds the members of the request's log line. */
function describe(span: Span, product: string, request: Request, response: Response): void {
  const { requestId, operation, client, errorBody } = request.context;
  const path: unknown = (request.route as { path?: unknown } | undefined)?.path;
  const route = typeof path === 'string' ? `${request.baseUrl}${path}`.replace(/:(\w+)/g, '{$1}') : undefined;
  if (route !== undefined) span.updateName(`${request.method} ${route}`);
  span.setAttributes({
    'http.route': route,
    [`${product}.request_id`]: requestId,
    [`${product}.operation`]: operation,
    [`${product}.client`]: client,
    [`${product}.error_code`]: errorBody?.code,
    [`${product}.aborted`]: isAborted(request, response) || undefined,
  });
}
