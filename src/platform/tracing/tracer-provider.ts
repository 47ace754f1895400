import { Logger } from '@nestjs/common';
import { context, diag, DiagLogLevel, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider as SdkTracerProvider,
} from '@opentelemetry/sdk-trace';
import { ATTR_SERVICE_INSTANCE_ID, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import { randomUUID } from 'node:crypto';
import type { TracingSettings } from '../../settings/tracing-settings.js';
import { StartupError } from '../errors/startup-error.js';
import { LimitedWarnings } from './limited-warnings.js';

/** The default of OTEL_SERVICE_NAME. */
const SERVICE_NAME = 'petstore';

/** Longest value in a span in characters: clients choose some values, and spans wait in memory. */
const MAX_VALUE_LENGTH = 1_024;

/** Time in ms that the queue waits beyond the exporter's own time limit, so that the exporter reports its error first. */
const EXPORT_GRACE_MS = 1_000;

/** Warnings of spans that are lost: the queue is full, or the collector has rejected some of an export that it took. */
const LOSS = /^(Dropped \d+ spans |Received Partial Success response: .*"rejectedSpans":"?[1-9])/;

type ExporterOptions = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>;

/** OpenTelemetry's SDK with a bounded queue of spans. If the collector does not accept them, further spans are dropped. */
export class TracerProvider {
  private constructor(private readonly sdk: SdkTracerProvider) {}

  /**
   * Registers the provider with OpenTelemetry's API, so that modules use it, too.
   *
   * @throws StartupError for a protocol or sampler that needs another SDK
   */
  static async register(settings: TracingSettings, version: string): Promise<TracerProvider> {
    // Before the exporter is created, because it warns about certificates that it cannot read.
    const log = new Logger('Tracing');
    logWarnings(log);
    const processor = new BatchSpanProcessor({
      exporter: await createExporter(settings),
      maxQueueSize: settings.queueSize,
      maxExportBatchSize: settings.batchSize,
      scheduledDelayMillis: settings.delayMs,
      exportTimeoutMillis: settings.timeoutMs + EXPORT_GRACE_MS,
    });
    const ownAttributes = {
      [ATTR_SERVICE_NAME]: SERVICE_NAME,
      [ATTR_SERVICE_VERSION]: version,
      [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
      'process.pid': process.pid,
    };
    const sdk = new SdkTracerProvider({
      resource: defaultResource().merge(resourceFromAttributes({ ...ownAttributes, ...settings.resource })),
      sampler: samplerOf(settings),
      spanLimits: { attributeValueLengthLimit: MAX_VALUE_LENGTH },
      spanProcessors: [processor],
    });
    const isRegistered =
      trace.setGlobalTracerProvider(sdk) &&
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    if (!isRegistered) {
      log.warn(
        'Requests are not traced: another version of @opentelemetry/api, or part of another SDK, is registered.',
      );
    }
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    return new TracerProvider(sdk);
  }

  /**
   * Sends the waiting spans, and shuts down. Takes at most the time limit of an export.
   *
   * @throws Error when the collector does not accept them
   */
  async close(): Promise<void> {
    const closed = this.sdk.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
    try {
      await closed;
    } catch (error) {
      throw new Error(textOf(error), { cause: error });
    } finally {
      diag.disable();
    }
  }
}

/** Logs OpenTelemetry's warnings. Warnings of lost spans are limited separately, so that others cannot suppress them. */
function logWarnings(log: Logger): void {
  const losses = new LimitedWarnings(log);
  const others = new LimitedWarnings(log);
  const lost = (text: string): void => losses.warn(`Spans are lost: ${text}`);
  const warn = (...words: unknown[]): void => {
    // Some warnings begin with the name of a component, or have the cause behind the message.
    const text = words.filter((word) => typeof word === 'string').join(' ');
    if (LOSS.test(text)) lost(textOf(text));
    else others.warn(`OpenTelemetry: ${textOf(text)}`);
  };
  const logger = { error: warn, warn, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler((error) => lost(textOf(error)));
}

/** Creates the exporter of a protocol; loads only this one. */
async function createExporter(settings: TracingSettings): Promise<SpanExporter> {
  const { protocol, url, headers, timeoutMs } = settings;
  const compression = settings.compression as ExporterOptions['compression'];
  const options: ExporterOptions = { url, headers, timeoutMillis: timeoutMs, compression };
  switch (protocol) {
    case 'http/json': {
      const exporter = await import('@opentelemetry/exporter-trace-otlp-http');
      return new exporter.OTLPTraceExporter(options);
    }
    case 'http/protobuf': {
      const exporter = await import('@opentelemetry/exporter-trace-otlp-proto');
      return new exporter.OTLPTraceExporter(options);
    }
    case 'grpc':
      throw needsOwnSdk('OTEL_EXPORTER_OTLP_PROTOCOL=grpc', 'http/protobuf, which collectors take on port 4318');
  }
}

function samplerOf({ sampler, ratio }: TracingSettings): Sampler {
  const roots: Partial<Record<TracingSettings['sampler'], () => Sampler>> = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  };
  const root = roots[sampler.replace('parentbased_', '') as TracingSettings['sampler']]?.();
  if (root === undefined) throw needsOwnSdk(`OTEL_TRACES_SAMPLER=${sampler}`, 'parentbased_traceidratio');
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

function needsOwnSdk(setting: string, instead: string): StartupError {
  return new StartupError(
    `${setting} needs an SDK of OpenTelemetry that you start yourself (node --import). Without one, use ${instead}.`,
  );
}

/** The first line of an error, without the collector's answer, at most 200 characters. */
function textOf(error: unknown): string {
  const { message, code, errors } = error as { message?: string; code?: unknown; errors?: unknown[] };
  const text = message || (Array.isArray(errors) && errors[0] instanceof Error ? errors[0].message : '') || code;
  return (String(text ?? error).split('\n', 1)[0] as string).slice(0, 200);
}

function ignore(): void {}
