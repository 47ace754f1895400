import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import pg from 'pg';
import { Database } from '../../src/platform/database/database.js';
import { createTestApp, type TestApp } from '../support/app.js';

/*
 * OpenTelemetry's instrumentation of pg sees each statement of `Database` and its end. Loading hooks do not reach Jest's
 * modules, so the test passes pg to the instrumentation, which changes the same prototype as in a separate process.
 */

const exporter = new InMemorySpanExporter();
const instrumentation = new PgInstrumentation();
instrumentation.setTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
const [definition] = (
  instrumentation as unknown as { init(): { patch?(module: unknown): void; unpatch?(module: unknown): void }[] }
).init();

let app: TestApp;
let database: Database;
beforeAll(async () => {
  definition?.patch?.(pg);
  app = await createTestApp();
  database = app.nest.get(Database);
});
afterAll(async () => {
  await app.close();
  definition?.unpatch?.(pg);
});

/** The finished spans of statements whose text matches. */
function spansOf(text: RegExp): ReadableSpan[] {
  return exporter
    .getFinishedSpans()
    .filter(({ attributes }) => Object.values(attributes).some((value) => text.test(String(value))));
}

test('a statement has one span, which ends after the answer', async () => {
  const statement = { name: 'traced', text: 'SELECT pg_sleep(0.1)::text, 17::int AS traced_once' };
  for (const calls of [1, 2]) {
    expect(await database.readPrimary(statement, [])).toEqual([['', 17]]);
    expect(spansOf(/traced_once/)).toHaveLength(calls);
  }
  for (const { duration, status } of spansOf(/traced_once/)) {
    expect(duration[0] * 1_000 + duration[1] / 1e6).toBeGreaterThanOrEqual(95);
    expect(status.code).toBe(0);
  }
});

test('a statement that fails has a span with the error', async () => {
  await expect(database.readPrimary({ name: '', text: 'SELECT 1 / 0 AS traced_failure' }, [])).rejects.toThrow(
    'division by zero',
  );
  expect(spansOf(/traced_failure/).map(({ status }) => status.code)).toEqual([2]);
});

test('requests have spans of their statements', async () => {
  exporter.reset();
  expect((await app.client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).status).toBe(201);
  expect((await app.client.get('/v1/pets')).status).toBe(200);
  expect(spansOf(/INSERT INTO "?pet/).length).toBeGreaterThan(0);
  expect(spansOf(/FROM "?pet/).length).toBeGreaterThan(0);
});
