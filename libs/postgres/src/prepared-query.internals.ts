import { PassThrough } from 'node:stream';
import pg, { type Connection, type Submittable } from 'pg';
import { serialize } from 'pg-protocol';
import type { FastReach } from '#runtime';
import { asFailedQuery } from './connections/connection-errors.js';
import { asText, type ColumnParser, columnParserOf, type Execute, type Statement } from './statements.js';

/** Imported dynamically, because a static import of a missing module would fail the start. */
const utils = await import('pg/lib/utils.js').catch(() => undefined);

/**
 * The text, or the bytes, that PostgreSQL reads a value from; null for null and undefined. Throws TypeError for a value that
 * cannot be sent. Exists unless the check says otherwise.
 */
const prepareValue = utils?.prepareValue as (value: unknown) => string | Buffer | null;

const { INT8 } = pg.types.builtins;

const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute(), serialize.sync()]);

/** The parser of each column of a statement; null if all columns stay text. */
type ColumnParsers = readonly ColumnParser[] | null;

/** By connection and statement name: the column parsers of the statements that PostgreSQL has prepared there. */
const prepared = new WeakMap<object, Map<string, ColumnParsers>>();

/**
 * One execution of a statement, in pg's interface for query classes (`Submittable`).
 *
 * pg's own `Query` asks PostgreSQL to describe the columns at each execution, and sends four messages in separate buffers.
 * This class asks only when the statement is parsed, and sends one buffer.
 */
class PreparedQuery implements Submittable {
  /** Tracing tools read `name` and `text`. */
  readonly name: string;
  readonly text: string;
  // `never` fits the rows of every caller.
  private readonly found: never[] = [];
  private parsers: ColumnParsers | undefined;
  private known!: Map<string, ColumnParsers>;
  private readonly values: (string | Buffer | null)[];

  /** @throws TypeError for a value that cannot be sent */
  constructor(
    { name, text }: Statement,
    values: readonly unknown[],
    /** Tracing tools, such as OpenTelemetry's, wrap it to notice the end of the statement. */
    public callback: (error: unknown, rows?: never[]) => void,
  ) {
    this.name = name;
    this.text = text;
    this.values = values.map(prepareValue);
  }

  submit(connection: Connection): void {
    const { name, text } = this;
    this.known = prepared.get(connection) ?? new Map<string, ColumnParsers>();
    this.parsers = this.known.get(name);
    const pieces = [serialize.bind({ statement: name, values: this.values }), EXECUTE_AND_SYNC];
    if (this.parsers === undefined) {
      prepared.set(connection, this.known);
      // Close first: PostgreSQL may have parsed the statement, and then refused to execute it.
      const ofStatement = { type: 'S', name } as const;
      pieces.unshift(serialize.close(ofStatement), serialize.parse({ name, text }), serialize.describe(ofStatement));
    }
    connection.stream.write(Buffer.concat(pieces));
  }

  /** Called at the first execution on a connection only. */
  handleRowDescription({ fields }: { fields: readonly { dataTypeID: number }[] }): void {
    const parsers = fields.map(({ dataTypeID }) => columnParserOf(dataTypeID));
    this.remember(parsers.some((parser) => parser !== asText) ? parsers : null);
  }

  private remember(parsers: ColumnParsers): void {
    this.parsers = parsers;
    if (this.name !== '') this.known.set(this.name, parsers);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { parsers } = this;
    const row = parsers ? fields.map((text, index) => (text === null ? null : parsers[index]?.(text))) : fields;
    this.found.push(row as never);
  }

  handleReadyForQuery(): void {
    // PostgreSQL describes no columns of a statement that has none.
    if (this.parsers === undefined) this.remember(null);
    this.callback(undefined, this.found);
  }

  handleError(error: unknown): void {
    this.callback(error);
  }

  // Required by pg.
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

/** Executes a statement by `PreparedQuery`. Callers see no difference to `executeQuery`. */
export const executePreparedQuery: Execute = (client, statement, values) =>
  new Promise((resolve, reject) => {
    const settle = (error: unknown, rows: never[] = []): void =>
      error === undefined ? resolve(rows) : reject(asFailedQuery(error, statement, values));
    client.query(new PreparedQuery(statement, values, settle));
  });

/** The errors and rows of two executions, of which PostgreSQL refuses the second, and their messages. */
const EXPECTED = ',1,Error: refused,; C|Stoys|P|toys|SELECT|D|Stoys|B|toys|1|E|S|B|toys|1|E|S|';

/** How a client passes the messages of PostgreSQL to a query class. */
interface ClientInternals {
  readonly connection: Connection;
  _activeQuery: Submittable;
  _handleRowDescription(message: { fields: { dataTypeID: number }[] }): void;
  _handleDataRow(message: { fields: string[] }): void;
  _handleCommandComplete(message: { text: string }): void;
  _handleErrorMessage(error: Error): void;
  _handleReadyForQuery(message: { status: string }): void;
}

export const PREPARED_QUERIES: FastReach & {
  check(Client?: typeof pg.Client, module?: typeof utils): string | undefined;
} = {
  dependency: 'pg',
  touches:
    'prepareValue of pg/lib/utils.js, the methods handle… that a client calls of a query, and serialize of pg-protocol',
  why: 'one message for a prepared statement, without a description of its columns',
  fastPath: 'prepared-queries',
  check: (Client: typeof pg.Client = pg.Client, module: typeof utils = utils) => {
    if (module?.prepareValue(1n) !== '1' || module.prepareValue(undefined) !== null)
      return 'its prepareValue has changed';
    const stream = new PassThrough();
    const client = new Client({ stream: () => stream }) as unknown as ClientInternals;
    const results: unknown[] = [];
    const submit = (): void => {
      const query = new PreparedQuery({ name: 'toys', text: 'SELECT' }, [1n], (error, rows) =>
        results.push(error, rows),
      );
      query.submit(client.connection);
      client._activeQuery = query;
    };
    submit();
    client._handleRowDescription({ fields: [{ dataTypeID: INT8 }] });
    client._handleDataRow({ fields: ['1'] });
    client._handleCommandComplete({ text: 'SELECT 1' });
    client._handleReadyForQuery({ status: 'I' });
    submit();
    client._handleErrorMessage(new Error('refused'));
    // Since Node 26 a piece at a time.
    let sent = '';
    for (let piece; (piece = stream.read() as Buffer | null) !== null;) sent += piece.toString();
    const seen = `${results.join()}; ${sent.replace(/[^ -~]+/g, '|')}`;
    return seen === EXPECTED ? undefined : `its clients treat a query in another way (${seen}; expected: ${EXPECTED})`;
  },
};
