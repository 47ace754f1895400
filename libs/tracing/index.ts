import { StartupError } from '#runtime';
import type { Part } from '#definition';
import { optional } from '#settings';

/** Optional peer dependencies in package.json: a service that does not trace does without. */
const INSTALL =
  'npm install @opentelemetry/api@~1.9.1 @opentelemetry/instrumentation-http@~0.223.0 ' +
  '@opentelemetry/instrumentation-pg@~0.76.0 @opentelemetry/sdk-node@~0.223.0';

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
  start: async ({ otlpEndpoint, product }) => {
    if (otlpEndpoint === undefined) return undefined;
    const { startSdk } = await import('./src/tracing.js').catch(refuse);
    return startSdk(product.name);
  },
} satisfies Part<typeof TRACING_SETTINGS>;

function refuse(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  throw new StartupError(`OTEL_EXPORTER_OTLP_ENDPOINT needs packages that ${INSTALL} installs.`);
}
