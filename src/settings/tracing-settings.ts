import type { SettingsReader } from './settings-reader.js';

/** How spans travel to the collector (OTLP). */
export const OTLP_PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'] as const;

/**
 * Samplers, named as in the OpenTelemetry specification. The last three, and `grpc` above, need an SDK that the
 * application's own code starts.
 */
export const TRACE_SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'jaeger_remote',
  'parentbased_jaeger_remote',
  'xray',
] as const;

/**
 * The settings of tracing, from the standard variables of OpenTelemetry. OpenTelemetry's exporter itself reads
 * OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_KEY and _CLIENT_CERTIFICATE, and the same three with OTEL_EXPORTER_OTLP_TRACES_.
 */
export interface TracingSettings {
  /** URL that spans are sent to: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT and `/v1/traces`. */
  readonly url: string;
  /** `http/protobuf` by default. */
  readonly protocol: (typeof OTLP_PROTOCOLS)[number];
  /** Header fields of each export, such as a token. None by default. */
  readonly headers: Readonly<Record<string, string>>;
  /** `none` by default. */
  readonly compression: 'none' | 'gzip';
  /** Longest time in ms of an export with its retries. 10 000 by default; 100 to 600 000. */
  readonly timeoutMs: number;
  /** `parentbased_always_on` by default: the caller decides, and a request without a caller is kept. */
  readonly sampler: (typeof TRACE_SAMPLERS)[number];
  /** Share of the traces that a ratio sampler keeps. 1 by default; 0 to 1. */
  readonly ratio: number;
  /** Attributes of every span of this process, OTEL_SERVICE_NAME as `service.name` among them. */
  readonly resource: Readonly<Record<string, string>>;
  /** Largest number of spans that wait for an export. Further ones are dropped. 2048 by default; 1 to 100 000. */
  readonly queueSize: number;
  /** Largest number of spans in one export. 512 by default; 1 to `queueSize`. */
  readonly batchSize: number;
  /** Longest time in ms between two exports. 5000 by default; 1 to 600 000. */
  readonly delayMs: number;
}

/** The value of the variable for traces if it is set, else that of the variable for all signals. A fault of either counts. */
function ofTraces<T>(settings: SettingsReader, name: string, nameOfAll: string, read: (name: string) => T): T {
  const ofAll = read(nameOfAll);
  return settings.text(name) === undefined ? ofAll : read(name);
}

function collectorUrl(settings: SettingsReader, name: string): URL | undefined {
  const value = settings.text(name);
  if (value === undefined) return undefined;
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
    ? new URL(value)
    : settings.reject(name, 'an http or https URL such as http://collector.example:4318', undefined);
}

/** Whether OTEL_SDK_DISABLED is `true`, in upper or lower case. Values other than `true` and `false` are a fault. */
function isDisabled(settings: SettingsReader): boolean {
  const value = settings.text('OTEL_SDK_DISABLED')?.toLowerCase() ?? 'false';
  return value === 'true' || (value !== 'false' && settings.reject('OTEL_SDK_DISABLED', 'one of true, false', false));
}

/**
 * Reads the settings of tracing: undefined without an endpoint for spans, or when tracing is switched off. The other
 * variables are not checked then, because a platform may set them for services that trace nothing.
 */
export function readTracing(settings: SettingsReader): TracingSettings | undefined {
  const base = collectorUrl(settings, 'OTEL_EXPORTER_OTLP_ENDPOINT');
  if (base !== undefined) base.pathname = `${base.pathname.replace(/\/$/, '')}/v1/traces`;
  const url = collectorUrl(settings, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? base;
  if (url === undefined || isDisabled(settings)) return undefined;
  if (settings.choice('OTEL_TRACES_EXPORTER', 'otlp', ['otlp', 'none']) === 'none') return undefined;
  const serviceName = settings.text('OTEL_SERVICE_NAME');
  const sampler = settings.choice('OTEL_TRACES_SAMPLER', 'parentbased_always_on', TRACE_SAMPLERS);
  const queueSize = settings.integer('OTEL_BSP_MAX_QUEUE_SIZE', 2_048, 1, 100_000);
  return {
    url: url.href,
    protocol: ofTraces(settings, 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL', (name) =>
      settings.choice(name, 'http/protobuf', OTLP_PROTOCOLS),
    ),
    // Merged, as OpenTelemetry's exporter does, which reads the environment, too.
    headers: {
      ...settings.pairs('OTEL_EXPORTER_OTLP_HEADERS'),
      ...settings.pairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS'),
    },
    compression: ofTraces(settings, 'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION', 'OTEL_EXPORTER_OTLP_COMPRESSION', (name) =>
      settings.choice(name, 'none', ['none', 'gzip']),
    ),
    timeoutMs: ofTraces(settings, 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', 'OTEL_EXPORTER_OTLP_TIMEOUT', (name) =>
      settings.integer(name, 10_000, 100, 600_000),
    ),
    sampler,
    // For other samplers OTEL_TRACES_SAMPLER_ARG has another meaning.
    ratio: sampler.endsWith('ratio') ? settings.ratio('OTEL_TRACES_SAMPLER_ARG') : 1,
    resource: {
      ...settings.pairs('OTEL_RESOURCE_ATTRIBUTES'),
      ...(serviceName !== undefined && { 'service.name': serviceName }),
    },
    queueSize,
    batchSize: settings.integer('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', Math.min(512, queueSize), 1, queueSize),
    delayMs: settings.integer('OTEL_BSP_SCHEDULE_DELAY', 5_000, 1, 600_000),
  };
}
