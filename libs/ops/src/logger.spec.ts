import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { pino } from 'pino';
import { RequestContext } from '#edge';
import { infoLines, NestLogger, timestamp } from './logger.js';

type Line = Record<string, unknown> & { msg: string; error?: Record<string, unknown> };

const lines: string[] = [];
// As in the service: modules call Nest's Logger, which calls the application's logger.
const nest = new NestLogger(pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) }));
Logger.overrideLogger(nest);
const logger = new Logger('Orders');

/** The only line that `write` writes. */
function lineOf(write: () => void): Line {
  lines.splice(0);
  write();
  expect(lines).toHaveLength(1);
  return JSON.parse(String(lines[0])) as Line;
}

function request(): RequestContext {
  const context = new RequestContext('request-1');
  context.operation = 'findOrder';
  return context;
}

/** An error like those of `pg` and TypeORM: its members contain values that the client sent. */
const driverError = (message: string, code: string): Error =>
  Object.assign(new Error(message), {
    code,
    constraint: 'order_pkey',
    detail: 'Key (id)=(secret) already exists.',
    parameters: ['secret'],
    query: "INSERT INTO orders VALUES ('secret')",
  });

const STACK = 'Error: old\n    at Orders.find (/app/orders.js:1:2)';

test.each<[string, () => void, object]>([
  ['a text', () => logger.error('text'), { level: 50, context: 'Orders', msg: 'text' }],
  ['a text and a stack', () => logger.error('text', STACK), { context: 'Orders', msg: 'text', stack: STACK }],
  ['an error', () => logger.error(new TypeError('wrong')), { msg: 'wrong', error: { type: 'TypeError' } }],
  ['an error without a message', () => logger.error(new RangeError()), { msg: 'RangeError' }],
  [
    'a text and an error',
    () => logger.error('text', new TypeError('wrong')),
    {
      context: 'Orders',
      msg: 'text',
      error: { type: 'TypeError', message: 'wrong', stack: expect.stringMatching(/at /) as string },
    },
  ],
  ['a text and an object', () => logger.log('text', { id: 7n }), { level: 30, msg: 'text', details: [{ id: '7' }] }],
  ['an object', () => logger.log({ event: 'paid', id: 7 }), { context: 'Orders', msg: '{"event":"paid","id":7}' }],
  ['nothing', () => logger.error(undefined), { msg: 'undefined' }],
  [
    'a text, an error and a request',
    () => logger.error('text', new TypeError('wrong'), request()),
    { requestId: 'request-1', operation: 'findOrder', error: { message: 'wrong' }, context: 'Orders' },
  ],
  [
    'a warning of a request',
    () => logger.warn('text', request()),
    { level: 40, requestId: 'request-1', operation: 'findOrder' },
  ],
  ['a logger without a context', () => new Logger().error('text', STACK), { msg: 'text', stack: STACK }],
])('%s', (_, write, members) => {
  const line = lineOf(write);
  expect(line).toMatchObject(members);
  const known = ['level', 'context', 'requestId', 'operation', 'error', 'stack', 'msg', ...Object.keys(members)];
  expect(Object.keys(line).filter((name) => !known.includes(name))).toEqual([]);
});

describe('the log never contains values that clients sent:', () => {
  test.each<[string, (error: Error) => void]>([
    ['as the message', (error) => logger.error(error)],
    ['behind a text', (error) => logger.error('text', error)],
    ['as a cause', (error) => logger.error(new Error('outer', { cause: error }))],
    ['among others', (error) => logger.error(new AggregateError([error], 'several'))],
    ['in an object', (error) => logger.error({ failed: error })],
    ['in an object behind a text', (error) => logger.log('text', { failed: error })],
  ])('an error of the driver %s gives its message and code, not its other members', (_, write) => {
    const text = JSON.stringify(lineOf(() => write(driverError('duplicate key', '23505'))));
    for (const word of ['duplicate key', '23505', 'order_pkey']) expect(text).toContain(word);
    expect(text).not.toContain('secret');
  });

  test('a value that a data exception of PostgreSQL quotes is replaced', () => {
    const error = driverError('invalid input syntax for type integer: "the "secret"\nvalue"', '22P02');
    const line = lineOf(() => logger.error(error));
    expect(line.error).toMatchObject({ message: 'invalid input syntax for type integer: "…"', code: '22P02' });
    expect(line.msg).toBe('invalid input syntax for type integer: "…"');
    expect(JSON.stringify(line)).not.toContain('secret');
    expect(line.error?.['stack']).toMatch(/^Error: invalid input syntax for type integer: "…"\n +at /);
  });
});

describe('a line is bounded', () => {
  const circle: Record<string, unknown> = { name: 'circle' };
  circle['self'] = circle;
  const endless = new Error('endless');
  endless.cause = endless;

  test.each<[string, unknown]>([
    ['a long text', 'x'.repeat(10_000_000)],
    ['a long message', new Error('x'.repeat(10_000_000))],
    ['a circle', circle],
    ['an error that is its own cause', endless],
    ['many members', Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`member${index}`, index]))],
    [
      'many objects',
      Array.from({ length: 1_000 }, () => Array.from({ length: 1_000 }, () => ({ a: 'x'.repeat(100) }))),
    ],
    ['many errors', new AggregateError(Array.from({ length: 10_000 }, () => new Error('x'.repeat(1_000))))],
    ['bytes', Buffer.alloc(1_000_000)],
  ])('%s', (_, value) => {
    for (const write of [() => logger.error(value), () => logger.error('text', value), () => logger.log({ value })]) {
      expect(JSON.stringify(lineOf(write)).length).toBeLessThan(150_000);
    }
  });

  test('a getter that throws does not fail the caller', () => {
    const broken = Object.defineProperty({}, 'member', {
      enumerable: true,
      get: () => {
        throw new Error('not readable');
      },
    });
    expect(lineOf(() => logger.error('text', broken))).toMatchObject({ msg: 'text', details: '…' });
    const odd = Object.assign(new Error(), { message: Symbol('no text') as unknown as string });
    expect(lineOf(() => logger.error('text', odd))).toMatchObject({ msg: 'text', error: { message: '…' } });
  });
});

test('lines have the time format of pino, also when the clock goes back', () => {
  const clock = jest.spyOn(Date, 'now');
  try {
    for (const text of ['06:59:58.007', '06:59:59.999', '07:00:00.000', '06:59:59.120']) {
      clock.mockReturnValue(Date.parse(`2026-02-28T${text}Z`));
      expect(timestamp()).toBe(pino.stdTimeFunctions.isoTime());
    }
  } finally {
    clock.mockRestore();
  }
});

test.each([
  ['info', ['{"level":30,"status":200,"msg":"request"}']],
  ['warn', []],
])('at level %s the log has these lines of requests: %j', (level, expected) => {
  const written: string[] = [];
  const write = infoLines(pino({ level }, { write: (line: string) => void written.push(line) }));
  write(',"status":200,"msg":"request"');
  expect(written.map((line) => line.replace(/"time":"[\dT:.-]+Z","pid":\d+,/, '').trim())).toEqual(expected);
});
