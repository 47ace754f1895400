import type pg from 'pg';
import { traced, traceStatements } from './statement-tracing.js';

afterEach(() => traceStatements(undefined));

test('the span of a statement with its callback in the query object ends, and the object can be reused', () => {
  const ends: unknown[] = [];
  traceStatements({ begin: () => (error) => ends.push(error) });
  class Client {
    query(input: { text: string; callback: (error: unknown, result: unknown) => void }): undefined {
      input.callback(null, input.text);
    }
  }
  const client = new (traced(Client as unknown as typeof pg.Client))();
  const results: unknown[] = [];
  const statement = { text: 'SELECT 1', callback: (_: unknown, result: unknown) => results.push(result) };
  const { callback } = statement;
  for (let count = 1; count <= 2; count++) {
    expect(client.query(statement as never)).toBeUndefined();
    expect([ends.length, results.length]).toEqual([count, count]);
  }
  expect(statement.callback).toBe(callback);
  expect(results).toEqual(['SELECT 1', 'SELECT 1']);
  expect(ends).toEqual([undefined, undefined]);
});
