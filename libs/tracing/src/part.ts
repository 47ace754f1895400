import type { Part } from '#service';
import type { TRACING_SETTINGS } from './start-tracing.js';

/** Spans of requests and statements for OpenTelemetry. */
export const tracing = {
  settings: async () => (await import('./start-tracing.js')).TRACING_SETTINGS,
  settingsAfter: 'REQUEST_IN_LOG',
  start: async (config) => (await import('./start-tracing.js')).startTracing(config),
} satisfies Part<typeof TRACING_SETTINGS>;
