import pg from 'pg';
import { executeOf } from './execution.js';
import { executePreparedQuery, PREPARED_QUERIES } from './prepared-query.internals.js';
import { executeQuery } from './statements.js';

const ON = { databaseDirectUrl: undefined, fastPaths: true };

test('prepared-queries selects the query class of the service; without it, or with another pg, pg executes statements', () => {
  expect(executeOf(ON)).toBe(executePreparedQuery);
  expect(executeOf({ ...ON, fastPaths: false })).toBe(executeQuery);
  expect(executeOf(ON, { ...PREPARED_QUERIES, check: () => 'pg has changed' })).toBe(executeQuery);
});

/** A client of a changed pg. */
function changed(members: object): typeof pg.Client {
  return class extends pg.Client {
    constructor(options?: pg.ClientConfig) {
      super(options);
      Object.assign(this, members);
    }
  };
}

test.each<[Client: typeof pg.Client, module: object | undefined, difference: RegExp]>([
  [changed({ _handleDataRow: () => undefined }), undefined, /treat a query in another way \(,,Error: refused,;/],
  [changed({ _handleErrorMessage: () => undefined }), undefined, /treat a query in another way \(,1;/],
  [pg.Client, { prepareValue: String }, /^its prepareValue has changed$/],
])('a different pg is noticed', (Client, module, difference) => {
  expect(PREPARED_QUERIES.check()).toBeUndefined();
  expect(PREPARED_QUERIES.check(Client, module as Parameters<typeof PREPARED_QUERIES.check>[1])).toMatch(difference);
});
