import { ValidationPipe } from '@nestjs/common';
import { DECIDING_OPTIONS, lateOptionsOf } from './validation-pipes.internals.js';

const names = DECIDING_OPTIONS.split(',');

test('the options of a ValidationPipe that decide, and none of one without options', () => {
  const all = new ValidationPipe({
    ...Object.fromEntries(names.map((name) => [name, true])),
    groups: ['trial'],
    errorHttpStatusCode: 422,
    errorFormat: 'grouped',
    exceptionFactory: () => new Error('trial'),
    transformOptions: { enableImplicitConversion: true },
  });
  expect(lateOptionsOf([all], 'trial')).toEqual(names.map((name) => `${name} of trial`));
  expect(lateOptionsOf([new ValidationPipe()], 'trial')).toEqual([]);
});
