import type { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { pino } from 'pino';
import type { PlatformExpressAdapter } from '../server/express-adapter.js';
import type { RequestContext } from '../server/requests/request-context.js';
import { Metrics } from '../metrics/metrics.js';
import { RequestLog } from './request-log.js';

const metrics = new Metrics();
afterAll(() => metrics.onApplicationShutdown());

/** The log line of an answer to a GET that took 12.34567 ms, without its time and process. */
function lineOf(context: Partial<RequestContext>, response: Partial<Response>, level = 'info'): string {
  const lines: string[] = [];
  const logger = pino({ level }, { write: (line: string) => void lines.push(line) });
  const times = { startedAt: 1_000, answeredAt: 1_012.34567 };
  const host = undefined as unknown as HttpAdapterHost<PlatformExpressAdapter>;
  new RequestLog(logger, metrics, host).answered(
    {
      context: { requestId: 'id', isCut: false, ...times, ...context },
      method: 'GET',
      socket: { destroyed: false },
    } as Request,
    { statusCode: 200, headersSent: true, writableFinished: true, ...response } as Response,
  );
  return lines.join('').replace(/"time":"[\dT:.-]+Z","pid":\d+,/, '');
}

test('the line of an answer has its members in this order', () => {
  const context = { operation: 'findOrder', client: 'naïve "name"\n', errorCode: 'order_not_found' };
  expect(lineOf(context, { statusCode: 404 })).toBe(
    '{"level":30,"requestId":"id","operation":"findOrder","client":"naïve \\"name\\"\\n","method":"GET","status":404,' +
      '"code":"order_not_found","durationMs":12.346,"msg":"request"}\n',
  );
});

test('no line is written above level info', () => {
  expect(lineOf({}, {}, 'warn')).toBe('');
});
