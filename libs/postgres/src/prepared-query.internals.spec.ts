import { PassThrough } from 'node:stream';
import pg, { type ClientBase } from 'pg';
import { executePreparedQuery } from './prepared-query.internals.js';

const { INT8 } = pg.types.builtins;

/** How a client passes the messages of PostgreSQL to a query class. */
interface ClientInternals {
  _connected: boolean;
  readyForQuery: boolean;
  _handleRowDescription(message: { fields: { dataTypeID: number }[] }): void;
  _handleDataRow(message: { fields: string[] }): void;
  _handleCommandComplete(message: { text: string }): void;
  _handleErrorMessage(error: Error): void;
  _handleReadyForQuery(message: { status: string }): void;
}

test('the first execution describes the columns, another one is a single message, and its error rejects', async () => {
  const stream = new PassThrough();
  const client = new pg.Client({ stream: () => stream });
  const internals = client as unknown as ClientInternals;
  Object.assign(internals, { _connected: true, readyForQuery: true });
  const execute = (): Promise<unknown> =>
    executePreparedQuery(client as unknown as ClientBase, { name: 'toys', text: 'SELECT' }, [1n, undefined]);
  const first = execute();
  internals._handleRowDescription({ fields: [{ dataTypeID: INT8 }] });
  internals._handleDataRow({ fields: ['1'] });
  internals._handleCommandComplete({ text: 'SELECT 1' });
  internals._handleReadyForQuery({ status: 'I' });
  expect(await first).toEqual([['1']]);
  const second = execute();
  internals._handleErrorMessage(new Error('refused'));
  await expect(second).rejects.toThrow('refused');
  // Since Node 26 a piece at a time.
  let sent = '';
  for (let piece; (piece = stream.read() as Buffer | null) !== null;) sent += piece.toString();
  expect(sent.replace(/[^ -~]+/g, '|')).toBe('C|Stoys|P|toys|SELECT|D|Stoys|B|toys|1|E|S|B|toys|1|E|S|');
});
