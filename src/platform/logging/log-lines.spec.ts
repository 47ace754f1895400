import fc from 'fast-check';
import { type Logger, type LoggerOptions, pino } from 'pino';
import { jest } from '@jest/globals';
import { Logger as NestLogger } from '@nestjs/common';
import { canWriteLines, infoLines } from './log-lines.js';

/** A logger, and the lines that it has written. */
function memoryLogger(options: LoggerOptions): { logger: Logger; written: string[] } {
  const written: string[] = [];
  return { logger: pino(options, { write: (line: string) => void written.push(line) }), written };
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const level = fc.constantFrom(...LEVELS);
/** Texts without unpaired surrogates: pino writes those unchanged, but UTF-8 cannot represent them. */
const text = fc.string({ unit: 'binary', maxLength: 120 });
const members = fc.record(
  {
    requestId: text,
    client: text,
    status: fc.nat(),
    durationMs: fc.double({ noNaN: true, noDefaultInfinity: true }),
    aborted: fc.boolean(),
  },
  { requiredKeys: [] },
);
const base = fc.constantFrom<LoggerOptions>(
  { base: { pid: process.pid } },
  { base: null },
  {},
  { base: { pid: 1, name: 'a "name"' } },
);

test('infoLines writes the same bytes as logger.info, also after changes of the level', () => {
  const steps = fc.array(fc.record({ level: fc.option(level, { nil: undefined }), members }), { maxLength: 8 });
  fc.assert(
    fc.property(base, level, text, steps, (options, first, message, wanted) => {
      let count = 0;
      let ownCount = 0;
      const time = (nth: number): string => `,"time":"2026-11-20T00:00:00.${String(nth).padStart(3, '0')}Z"`;
      const expected = memoryLogger({ ...options, level: first, timestamp: () => time(count++) });
      const actual = memoryLogger({ ...options, level: first, timestamp: () => time(ownCount++) });
      const write = infoLines(actual.logger, message);
      for (const { level: changed, members: line } of wanted) {
        if (changed !== undefined) expected.logger.level = actual.logger.level = changed;
        expected.logger.info(line, '%s', message);
        write(line);
      }
      expect(actual.written).toEqual(expected.written);
    }),
    { numRuns: 500 },
  );
});

test('infoLines writes the bindings of a child logger, and no time when timestamps are off', () => {
  const options = { base: { pid: 1 }, timestamp: false };
  const expected = memoryLogger(options);
  const actual = memoryLogger(options);
  expected.logger.child({ module: 'orders' }).info({ status: 200 }, 'request');
  infoLines(actual.logger.child({ module: 'orders' }), 'request')({ status: 200 });
  expect(actual.written).toEqual(['{"level":30,"pid":1,"module":"orders","status":200,"msg":"request"}\n']);
  expect(actual.written).toEqual(expected.written);
});

test('log-lines works with the installed pino', () => {
  expect(canWriteLines()).toBe(true);
});

test.each<[string, typeof infoLines]>([
  ['pino writes lines in another way', () => () => undefined],
  [
    'pino fails on a trial line (TypeError: no symbol)',
    () => {
      throw new TypeError('no symbol');
    },
  ],
])('log-lines stays off with one line in the log when %s', (difference, lines) => {
  const warn = jest.spyOn(NestLogger.prototype, 'warn').mockImplementation(() => undefined);
  try {
    expect(canWriteLines(lines)).toBe(false);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`log-lines stays off: ${difference}.`)]]);
  } finally {
    warn.mockRestore();
  }
});
