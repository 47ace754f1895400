import type { Connection, Submittable } from 'pg';
import { prepareValue } from 'pg/lib/utils.js';
import { serialize } from 'pg-protocol';
import { asFailedQuery } from './connections/connection-errors.js';
import { asText, type ColumnParser, columnParserOf, type Execute, type Statement } from './statements.js';

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
