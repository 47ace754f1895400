import type { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import fc from 'fast-check';
import { METHODS } from 'node:http';
import { pino } from 'pino';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import { Metrics } from './metrics.js';
import { RequestLog } from './request-log.js';

const OPTIONS = { level: 'info', base: { pid: 7 }, timestamp: () => ',"time":"2026-11-20T00:00:00.000Z"' };

/** Every UTF-16 text, unpaired surrogates too. */
const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 })
  .map((codes) => String.fromCharCode(...codes));
const wellFormed = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 110 }),
  fc.constantFrom('"', '\\', '\u0000\u001f', '🐕', '\u2028'),
);

const answers = (text: fc.Arbitrary<string>) =>
  fc.record({
    operation: fc.option(fc.constantFrom('listOrders', 'createOrder'), { nil: undefined }),
    client: fc.option(text, { nil: undefined }),
    requestId: fc.oneof(fc.uuid(), text),
    errorCode: fc.option(fc.constantFrom('order_not_found', 'rate_limited'), { nil: undefined }),
    isCut: fc.boolean(),
    isDeprecated: fc.boolean(),
    startedAt: fc.double({ min: 0, max: 1e9, noNaN: true }),
    duration: fc.oneof(
      fc.double({ min: 0, max: 1e5, noNaN: true }),
      fc.constantFrom(0, 0.0004, 0.0005, 0.001, 12.3456),
    ),
    method: fc.constantFrom(...METHODS),
    status: fc.constantFrom(200, 201, 304, 404, 503),
    writableFinished: fc.boolean(),
  });

type Answer = typeof answers extends (text: never) => fc.Arbitrary<infer Value> ? Value : never;

const metrics = new Metrics();
afterAll(() => metrics.onApplicationShutdown());

/** The line of an answer, and the one that pino would have written of its members. */
function linesOf({ duration, method, status, writableFinished, ...given }: Answer): [line: string, expected: string] {
  const lines: string[] = [];
  const logger = pino(OPTIONS, { write: (line: string) => void lines.push(line) });
  const context = { ...given, answeredAt: given.startedAt + duration };
  new RequestLog(logger, metrics, undefined as unknown as HttpAdapterHost<PlatformExpressAdapter>).answered(
    { context, method } as unknown as Request,
    { statusCode: status, writableFinished } as Response,
  );
  const { requestId, operation, client, errorCode, isCut } = context;
  const aborted = writableFinished && !isCut ? undefined : true;
  const durationMs = Math.round((context.answeredAt - context.startedAt) * 1000) / 1000;
  logger.info({ requestId, operation, client, method, status, code: errorCode, durationMs, aborted }, 'request');
  expect(lines).toHaveLength(2);
  return lines as [string, string];
}

test('the line of an answer is byte for byte the one that pino writes of its members', () => {
  fc.assert(
    fc.property(answers(wellFormed), (answer) => {
      const [line, expected] = linesOf(answer);
      expect(line).toBe(expected);
    }),
    { numRuns: 500 },
  );
});

test('a client whose name is no text of UTF-8 makes a line of JSON with the same members', () => {
  fc.assert(
    fc.property(answers(anyText), (answer) => {
      const [line, expected] = linesOf(answer);
      expect(line).toMatch(/^[^\n]*\n$/);
      // A line is written as UTF-8.
      const read = JSON.parse(Buffer.from(line).toString()) as Record<string, unknown>;
      expect(Object.entries(read)).toEqual(Object.entries(JSON.parse(expected) as Record<string, unknown>));
    }),
    { numRuns: 500 },
  );
});
