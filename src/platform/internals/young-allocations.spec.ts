import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { setFlagsFromString } from 'node:v8';
import { allocateYoung } from './young-allocations.js';

let warn: jest.SpiedFunction<Logger['warn']>;
beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
});
afterEach(() => {
  warn.mockRestore();
  setFlagsFromString('--allocation-site-pretenuring');
});

test('accepts this version of V8, at each call', () => {
  allocateYoung();
  allocateYoung();
  expect(warn).not.toHaveBeenCalled();
});

test('refuses a version without the option with one line in the log', () => {
  // V8 leaves this option out of the tag. So it looks like an unknown one, about which V8 would print a line.
  allocateYoung('profile-deserialization');
  expect(warn.mock.calls).toEqual([
    [expect.stringContaining('young-allocations stays off: V8 has no option --profile-deserialization.')],
  ]);
});
