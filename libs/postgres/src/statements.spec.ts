import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { differenceOfPg } from '#internals';
import { executeOf, executePreparedQuery, executeQuery } from './statements.js';

const ON = { databaseDirectUrl: undefined, fastPaths: true };

test('prepared-queries selects the query class of the service; without it, or with another pg, pg executes statements', () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  expect(executeOf(ON)).toBe(executePreparedQuery);
  expect(executeOf({ ...ON, fastPaths: false })).toBe(executeQuery);
  expect(warn).not.toHaveBeenCalled();
  expect(executeOf(ON, () => 'pg has changed')).toBe(executeQuery);
  expect(warn.mock.calls).toEqual([[expect.stringContaining('prepared-queries stays off: pg has changed.')]]);
  warn.mockRestore();
});

const changed = (member: string, value: unknown) => (): object => Object.assign(new pg.Client(), { [member]: value });
const failing = (): object => {
  throw new Error('no client');
};

test.each<[difference: string, createClient: (() => object) | undefined, module: object | undefined]>([
  ["pg's clients have no _handleDataRow", changed('_handleDataRow', undefined), undefined],
  ["pg's connections have no stream", changed('connection', undefined), undefined],
  ["pg's connections have no stream", changed('connection', { stream: {} }), undefined],
  ['a trial of pg fails (Error: no client)', failing, undefined],
  ['pg has no prepareValue', undefined, {}],
  ["pg's prepareValue has changed", undefined, { prepareValue: String }],
])('a different pg is noticed: %s', (difference, createClient, module) => {
  expect(differenceOfPg(createClient, module as Parameters<typeof differenceOfPg>[1])).toBe(difference);
});
