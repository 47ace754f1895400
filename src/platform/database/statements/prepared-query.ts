import type { ClientBase, Connection, Submittable } from 'pg';
import { serialize } from 'pg-protocol';
import { isPrepared, markPrepared, prepareValue, write } from './pg-internals.js';
import { columnParserOf, type ColumnParser, type Execute, type Statement } from './statement.js';

const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute(), serialize.sync()]);

/** The parser of each column of a statement; undefined if all columns stay text. */
type ColumnParsers = readonly ColumnParser[] | undefined;

/** By connection and statement name: the column parsers of the statements that PostgreSQL has described there. */
const described = new WeakMap<object, Map<string, ColumnParsers>>();

/**
 * One execution of a statement, in pg's interface for query classes (`Submittable`).
 *
 * pg's own `Query` asks PostgreSQL to describe the columns at each execution, and sends four messages in separate buffers.
 * This class asks only when the statement is parsed, and sends one buffer.
 */
class PreparedQuery<Row extends unknown[]> implements Submittable {
  readonly rows: Promise<Row[]>;
  /** pg reads `name` and `text` to remember which statements PostgreSQL has parsed. */
  readonly name: string;
  readonly text: string;
  /** Settles `rows`. Tracing tools, such as OpenTelemetry's, wrap it to notice the end of the statement. */
  callback!: (error: unknown, rows?: Row[]) => void;
  private readonly found: Row[] = [];
  private parsers: ColumnParsers;
  private connection: object | undefined;
  private readonly values: (string | Buffer | null)[];

  /** @throws TypeError for a value that cannot be sent */
  constructor({ name, text }: Statement, values: readonly unknown[]) {
    this.name = name;
    this.text = text;
    this.values = values.map(prepareValue);
    this.rows = new Promise((resolve, reject) => {
      this.callback = (error, rows = []) => {
        if (error === undefined) resolve(rows);
        else reject(error);
      };
    });
  }

  submit(connection: Connection): void {
    const { name, text } = this;
    this.connection = connection;
    const pieces = [serialize.bind({ statement: name, values: this.values }), EXECUTE_AND_SYNC];
    if (isPrepared(connection, name)) {
      this.parsers = described.get(connection)?.get(name);
    } else {
      if (name !== '') markPrepared(connection, name, text);
      pieces.unshift(serialize.parse({ name, text }), serialize.describe({ type: 'S', name }));
    }
    write(connection, Buffer.concat(pieces));
  }

  /** Called at the first execution on a connection only. */
  handleRowDescription({ fields }: { fields: readonly { dataTypeID: number }[] }): void {
    const parsers = fields.map(({ dataTypeID }) => columnParserOf(dataTypeID));
    this.parsers = parsers.some((parser) => parser !== undefined) ? parsers : undefined;
    const { connection } = this;
    if (connection !== undefined && this.name !== '') {
      const statements = described.get(connection) ?? new Map<string, ColumnParsers>();
      described.set(connection, statements.set(this.name, this.parsers));
    }
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { parsers } = this;
    this.found.push((parsers ? fields.map((text, index) => readColumn(text, parsers[index])) : fields) as Row);
  }

  handleReadyForQuery(): void {
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

function readColumn(text: string | null, parser: ColumnParser): unknown {
  return text === null || parser === undefined ? text : parser(text);
}

/** Executes a statement by `PreparedQuery`. Callers see no difference to `executeQuery`. */
export const executePreparedQuery: Execute = async <Row extends unknown[]>(
  client: ClientBase,
  statement: Statement,
  values: readonly unknown[],
) => {
  const query = new PreparedQuery<Row>(statement, values);
  client.query(query);
  return query.rows;
};
