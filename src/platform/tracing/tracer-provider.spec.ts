import { Logger } from '@nestjs/common';
import { diag, trace } from '@opentelemetry/api';
import { globalErrorHandler } from '@opentelemetry/core';
import type { TracingSettings } from '../../settings/tracing-settings.js';
import { TracerProvider } from './tracer-provider.js';

const SETTINGS: TracingSettings = {
  url: 'http://127.0.0.1:9/v1/traces',
  protocol: 'http/json',
  headers: {},
  compression: 'none',
  timeoutMs: 100,
  sampler: 'always_on',
  ratio: 1,
  resource: {},
  queueSize: 10,
  batchSize: 10,
  delayMs: 600_000,
};
/** The global under which all versions of the API find the registered SDK. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

let warnings: string[];
let provider: TracerProvider | undefined;
beforeEach(() => {
  warnings = [];
  import.meta.jest.spyOn(Logger.prototype, 'warn').mockImplementation((message) => void warnings.push(String(message)));
});
afterEach(async () => {
  await provider?.close();
  provider = undefined;
  import.meta.jest.restoreAllMocks();
});

test('a warning about lost spans says so, and no other warning uses up its line of the minute', async () => {
  provider = await TracerProvider.register(SETTINGS, '1');
  const span = trace.getTracer('test').startSpan('a');
  diag.warn('You can only call end() on a span once.');
  diag.warn('Dropped 3 links because linkCountLimit reached');
  diag.warn('Dropped 5 spans because maxQueueSize reached');
  globalErrorHandler(new Error('ECONNREFUSED'));
  expect(span.isRecording()).toBe(true);
  expect(warnings).toEqual([
    'OpenTelemetry: You can only call end() on a span once.',
    'Spans are lost: Dropped 5 spans because maxQueueSize reached',
  ]);
});

test('spans that a collector rejects are reported as lost; a mere warning of a collector is not', async () => {
  provider = await TracerProvider.register(SETTINGS, '1');
  for (const partialSuccess of [
    { rejectedSpans: 0, errorMessage: 'old' },
    { rejectedSpans: 3, errorMessage: 'large' },
  ]) {
    diag.warn('Received Partial Success response:', JSON.stringify(partialSuccess));
  }
  expect(warnings).toEqual([
    'OpenTelemetry: Received Partial Success response: {"rejectedSpans":0,"errorMessage":"old"}',
    'Spans are lost: Received Partial Success response: {"rejectedSpans":3,"errorMessage":"large"}',
  ]);
});

test('a warning has its namespace and text, without errors and bytes', async () => {
  provider = await TracerProvider.register(SETTINGS, '1');
  diag
    .createComponentLogger({ namespace: 'Exporter' })
    .warn('No response.', new Error('unread'), Buffer.from('unread'));
  expect(warnings).toEqual(['OpenTelemetry: Exporter No response.']);
});

test('a certificate that cannot be read is logged at the start', async () => {
  import.meta.jest.replaceProperty(process, 'env', { OTEL_EXPORTER_OTLP_CERTIFICATE: '/no/such/file' });
  provider = await TracerProvider.register(SETTINGS, '1');
  expect(warnings).toEqual(['OpenTelemetry: Failed to read root certificate file']);
});

test('one line says that nothing is traced if another version of the API is registered', async () => {
  const all = globalThis as Record<symbol, unknown>;
  const before = all[REGISTERED];
  all[REGISTERED] = { version: '1.99.0' };
  try {
    const registered = await TracerProvider.register(SETTINGS, '1');
    expect(trace.getTracer('test').startSpan('a').isRecording()).toBe(false);
    await registered.close();
  } finally {
    all[REGISTERED] = before;
  }
  expect(warnings).toEqual([
    'Requests are not traced: another version of @opentelemetry/api, or part of another SDK, is registered.',
  ]);
});
