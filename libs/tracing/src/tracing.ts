import { Logger } from '@nestjs/common';
import { context, diag, DiagLogLevel, type Span, trace } from '@opentelemetry/api';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { NodeSDK, resources } from '@opentelemetry/sdk-node';
import type { Request, Response } from 'express';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAborted } from '#http';
import { LimitedWarnings, setActiveTrace } from '#runtime';
import { product } from '#settings';

/** Time in ms that the last spans have to reach the collector; part of the time that modules have to close. */
const FLUSH_TIMEOUT_MS = 1_500;

/** Shortest time in ms between two logged warnings: while a collector is unreachable, every export fails. */
const WARNING_INTERVAL_MS = 60_000;

/** Longest value in a span in characters: clients choose some values, and spans wait in memory. */
const MAX_VALUE_LENGTH = 1_024;

/**
 * Starts OpenTelemetry's SDK with its instrumentations of `http` and `pg`, and returns the function that stops it. The SDK
 * reads all variables `OTEL_*` itself. Only spans leave the process: metrics are at /metrics, and the log is on standard
 * output. Both instrumentations change prototypes, so modules that are loaded already are traced, too.
 */
export function startTracing(): () => Promise<void> {
  const log = new Logger('Tracing');
  setActiveTrace({ traceId, bind: (work) => context.bind(context.active(), work) });
  logWarnings(log);
  const sdk = new NodeSDK({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
    resource: resources.resourceFromAttributes({ 'service.name': product().name, 'process.pid': process.pid }),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [
      new HttpInstrumentation({
        // Queries may contain what clients keep secret.
        startIncomingSpanHook: () => ({ 'url.query': undefined }),
        applyCustomAttributesOnSpan: (span, request, response) => {
          if ('context' in request) describe(span, request as Request, response as unknown as Response);
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
  return () => stop(sdk, log);
}

function traceId(): string | undefined {
  const span = trace.getActiveSpan();
  // A span that has ended belongs to an earlier request of the connection.
  return span?.isRecording() ? span.spanContext().traceId : undefined;
}

/** Names the span of a request by its route, and adds the members of the request's log line. */
function describe(span: Span, request: Request, response: Response): void {
  const { requestId, operation, client, errorCode } = request.context;
  const path: unknown = (request.route as { path?: unknown } | undefined)?.path;
  const route = typeof path === 'string' ? `${request.baseUrl}${path}`.replace(/:(\w+)/g, '{$1}') : undefined;
  if (route !== undefined) span.updateName(`${request.method} ${route}`);
  const { name } = product();
  span.setAttributes({
    'http.route': route,
    [`${name}.request_id`]: requestId,
    [`${name}.operation`]: operation,
    [`${name}.client`]: client,
    [`${name}.error_code`]: errorCode,
    [`${name}.aborted`]: isAborted(request, response) || undefined,
  });
}

/** Logs OpenTelemetry's warnings, at most one a minute. */
function logWarnings(log: Logger): void {
  const warnings = new LimitedWarnings(log, WARNING_INTERVAL_MS);
  const warn = (...words: unknown[]): void =>
    warnings.warn(`OpenTelemetry: ${words.map(String).join(' ').split('\n', 1)[0]?.slice(0, 300)}`);
  const ignore = (): void => undefined;
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** Sends the waiting spans. A collector that does not take them delays the stop by FLUSH_TIMEOUT_MS at most. */
async function stop(sdk: NodeSDK, log: Logger): Promise<void> {
  const lost = (): void => log.warn('The collector did not get the last spans.');
  const late = sleep(FLUSH_TIMEOUT_MS, lost, { ref: false });
  const sent = sdk.shutdown().then(
    () => undefined,
    () => lost,
  );
  (await Promise.race([sent, late]))?.();
}
