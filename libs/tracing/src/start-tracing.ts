import { type Config, optional, type SettingsOf } from '#settings';

export const TRACING_SETTINGS = {
  otlpEndpoint: optional(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'an http or https URL such as http://collector.example:4318',
    "Collector of traces. If it is set, the service starts OpenTelemetry's SDK, which reads its other standard variables " +
      'itself. Not set: nothing of it is loaded.',
    (text) => (/^https?:\/\//.test(text) && URL.canParse(text) ? text : undefined),
  ),
};

/** Starts tracing if there is a collector, and returns the function that stops it. */
export async function startTracing({
  otlpEndpoint,
  product,
}: Pick<Config, 'product'> & SettingsOf<typeof TRACING_SETTINGS>): Promise<(() => Promise<void>) | undefined> {
  return otlpEndpoint === undefined ? undefined : (await import('./tracing.js')).startSdk(product.name);
}
