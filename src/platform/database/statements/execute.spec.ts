import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { chooseExecute } from './execute.js';
import { differenceOfPg } from './pg-internals.js';
import { executePreparedQuery } from './prepared-query.js';
import { executeQuery } from './statement.js';

let warn: jest.SpiedFunction<Logger['warn']>;
beforeEach(() => {
  warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
});
afterEach(() => warn.mockRestore());

test('prepared-queries selects the query class of the service; without it pg executes statements', () => {
  expect(chooseExecute(true)).toBe(executePreparedQuery);
  expect(chooseExecute(false)).toBe(executeQuery);
  expect(warn).not.toHaveBeenCalled();
});

/** A client that is not connected, with a changed member. */
function changed(change: (client: Record<string, unknown>, connection: Record<string, unknown>) => void): object {
  const client = new pg.Client() as unknown as Record<string, unknown>;
  change(client, client['connection'] as Record<string, unknown>);
  return client;
}

test.each<[difference: string, createClient: () => object]>([
  ["pg's clients have no _handleDataRow", () => changed((client) => (client['_handleDataRow'] = undefined))],
  ["pg's connections have no stream", () => changed((client) => (client['connection'] = undefined))],
  ["pg's connections have no stream", () => changed((_, connection) => (connection['stream'] = {}))],
  [
    "pg's connections have no parsedStatements",
    () => changed((_, connection) => delete connection['parsedStatements']),
  ],
  [
    "pg's connections have no submittedNamedStatements",
    () => changed((_, connection) => delete connection['submittedNamedStatements']),
  ],
  [
    'a trial of pg fails (Error: no client)',
    () => {
      throw new Error('no client');
    },
  ],
])('pg executes statements, and one log line says so, when %s', (difference, createClient) => {
  expect(chooseExecute(true, () => differenceOfPg(createClient))).toBe(executeQuery);
  expect(warn.mock.calls).toEqual([[expect.stringContaining(`prepared-queries stays off: ${difference}.`)]]);
});

test.each<[difference: string, module: object]>([
  ['pg has no prepareValue', {}],
  ["pg's prepareValue is another one", { prepareValue: String }],
])('a different pg/lib/utils.js is noticed: %s', (difference, module) => {
  expect(differenceOfPg(undefined, module as Parameters<typeof differenceOfPg>[1])).toBe(difference);
});
