import type { Part } from '#service';
import { optional } from '#settings';

const TRACING_SETTINGS = {
  otlpEndpoint: optional(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'an http or https URL such as http://collector.example:4318',
    "Collector of traces. If it is set, the service starts OpenTelemetry's SDK, which reads its other standard variables " +
      'itself. Not set: nothing of it is loaded.',
    (text) => (/^https?:\/\//.test(text) && URL.canParse(text) ? text : undefined),
  ),
};

/** Spans of requests and statements for OpenTelemetry. */
export const tracing = {
  settings: () => Promise.resolve(TRACING_SETTINGS),
  settingsAfter: 'REQUEST_IN_LOG',
  start: async ({ otlpEndpoint, product }) =>
    otlpEndpoint === undefined ? undefined : (await import('./tracing.js')).startSdk(product.name),
} satisfies Part<typeof TRACING_SETTINGS>;
