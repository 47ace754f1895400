import {
  BadGatewayException,
  Controller,
  Get,
  HttpException,
  InternalServerErrorException,
  Module,
  Param,
  ServiceUnavailableException,
} from '@nestjs/common';
import { ApiError, defineError, errorCatalogue } from '#errors';
import { Public } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import type { LogLine } from '../support/memory-log.js';
import { until } from '../support/until.js';

/*
 * How the service responds to exceptions of a module that is written like any other Nest application.
 */

const OVEN_BROKEN = defineError('oven_broken', 500, 'The oven is broken.');

const THROWN: Record<string, () => Error> = {
  bug: () => new TypeError('hidden-words'),
  internal: () => new InternalServerErrorException('hidden-words'),
  catalogued: () => new ApiError(OVEN_BROKEN, 'The oven is broken.', {}, { cause: new Error('hidden-words') }),
  unavailable: () => new ServiceUnavailableException('hidden-words'),
  gateway: () => new BadGatewayException('hidden-words', { cause: new Error('the cause of it') }),
};

const cycle: unknown[] = [];
cycle.push(cycle);

/** Values that are too deep for JSON. */
const UNWRITABLE: Record<string, unknown> = {
  cycle,
  deep: Array.from({ length: 100_000 }).reduce((inner) => [inner], 0),
};

@Public()
@Controller('test-exceptions')
class TestExceptionsController {
  @Get(':name')
  fail(@Param('name') name: string): unknown {
    if (name in UNWRITABLE) return UNWRITABLE[name];
    throw THROWN[name]?.() ?? new HttpException(`Status ${name}.`, Number(name));
  }
}

@Module({ controllers: [TestExceptionsController] })
class ExceptionsModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [ExceptionsModule] });
});
afterAll(() => app.close());

/** The log lines of a request except its request line. */
function linesOf(requestId: string): LogLine[] {
  return app.log.lines.filter((line) => line['requestId'] === requestId && line.msg !== 'request');
}

test('every status from 400 to 599 is kept, with a code of the catalogue, and a 4xx keeps its message', async () => {
  const codes = new Map(errorCatalogue().map(({ code, status }) => [code, status]));
  for (let status = 400; status < 600; status++) {
    const headers = { 'x-request-id': `status-${status}` };
    const answer = await app.client.get(`/v1/test-exceptions/${status}`, { headers, expects500: true });
    const { code, ...body } = answer.json as { code: string; message: string; status: number };
    expect([answer.status, body.status]).toEqual([status, status]);
    // A 5xx has a fixed message. A 4xx is the client's fault, so nothing of it is logged.
    expect([status, body.message === `Status ${status}.`]).toEqual([status, status < 500]);
    if (status < 500) expect(linesOf(`status-${status}`)).toEqual([]);
    const others = { client_error: status < 500, server_error: status >= 500 }[code];
    expect([status, code, others ?? codes.get(code) === status]).toEqual([status, code, true]);
  }
});

test.each([
  ['unavailable', 503, 'unavailable', 'The service cannot respond at the moment; Retry-After says when to try again.'],
  ['gateway', 502, 'bad_gateway', 'Another service that this request needs has failed.'],
])(
  'a 5xx has a fixed message, and its cause is logged as a warning of its request: %s',
  async (name, status, code, message) => {
    const headers = { 'x-request-id': `server-${name}` };
    // Such warnings are written at most once a second.
    await until(async () => {
      const answer = await app.client.get(`/v1/test-exceptions/${name}`, { headers });
      expect(answer.json).toEqual({ code, message, status });
      expect(answer.headers['retry-after']).toBe(status === 503 ? '1' : undefined);
      return linesOf(`server-${name}`).length > 0;
    });
    expect(linesOf(`server-${name}`)).toEqual([
      expect.objectContaining({
        level: 40,
        operation: 'fail',
        msg: expect.stringContaining(`Returned ${status}: hidden-words`) as string,
        error: expect.objectContaining({ stack: expect.stringContaining('exceptions.e2e-spec') as string }) as object,
      }),
    ]);
    if (name === 'gateway')
      expect(linesOf('server-gateway')[0]?.['error']).toMatchObject({ cause: { message: 'the cause of it' } });
  },
);

test.each([
  ['bug', 'internal_error', { type: 'TypeError', message: 'hidden-words' }],
  ['internal', 'internal_error', { message: 'hidden-words' }],
  ['catalogued', 'oven_broken', { cause: { message: 'hidden-words' } }],
  ['cycle', 'internal_error', { type: 'RangeError' }],
  ['deep', 'internal_error', { type: 'RangeError' }],
])('every 500 is logged as an error of its request: %s', async (name, code, error) => {
  const headers = { 'x-request-id': `bug-${name}` };
  const answer = await app.client.get(`/v1/test-exceptions/${name}`, { headers, expects500: true });
  expect([answer.status, answer.json]).toEqual([500, expect.objectContaining({ code })]);
  expect(answer.text).not.toContain('hidden-words');
  const [line, ...more] = linesOf(`bug-${name}`);
  expect(more).toEqual([]);
  expect(line).toMatchObject({ level: 50, operation: 'fail', error });
});
