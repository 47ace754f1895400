import type { ClientBase, Connection, Submittable } from 'pg';
import { serialize } from 'pg-protocol';
import { differenceOfPg, logOtherInternals, prepareValue } from '#internals';
import type { PostgresConfig } from '../connection-settings.js';
import { columnParserOf, type ColumnParser, type Execute, executeQuery, type Statement } from './statement.js';

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
class PreparedQuery<Row extends unknown[]> implements Submittable {
  readonly rows: Promise<Row[]>;
  /** Tracing tools read `name` and `text`. */
  readonly name: string;
  readonly text: string;
  /** Settles `rows`. Tracing tools, such as OpenTelemetry's, wrap it to notice the end of the statement. */
  callback!: (error: unknown, rows?: Row[]) => void;
  private readonly found: Row[] = [];
  private parsers: ColumnParsers | undefined;
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
    this.parsers = prepared.get(connection)?.get(name);
    const pieces = [serialize.bind({ statement: name, values: this.values }), EXECUTE_AND_SYNC];
    if (this.parsers === undefined) {
      // Close first: PostgreSQL may have parsed the statement, and then refused to execute it.
      const ofStatement = { type: 'S', name } as const;
      pieces.unshift(serialize.close(ofStatement), serialize.parse({ name, text }), serialize.describe(ofStatement));
    }
    connection.stream.write(Buffer.concat(pieces));
  }

  /** Called at the first execution on a connection only. */
  handleRowDescription({ fields }: { fields: readonly { dataTypeID: number }[] }): void {
    const parsers = fields.map(({ dataTypeID }) => columnParserOf(dataTypeID));
    this.remember(parsers.some((parser) => parser !== undefined) ? parsers : null);
  }

  private remember(parsers: ColumnParsers): void {
    this.parsers = parsers;
    const { connection, name } = this;
    if (connection === undefined || name === '') return;
    const statements = prepared.get(connection) ?? new Map<string, ColumnParsers>();
    prepared.set(connection, statements.set(name, parsers));
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { parsers } = this;
    this.found.push((parsers ? fields.map((text, index) => readColumn(text, parsers[index])) : fields) as Row);
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

/**
 * How statements are executed: by our own query class if the fast path `prepared-queries` is on, else by pg's. If pg's
 * internals differ from the known ones, logs one line and chooses pg's class.
 *
 * @param difference for tests
 */
export function executeOf(
  { databaseDirectUrl, fastPaths }: Pick<PostgresConfig, 'databaseDirectUrl' | 'fastPaths'>,
  difference = differenceOfPg,
): Execute {
  if (databaseDirectUrl !== undefined) return executeUnnamed;
  if (!fastPaths) return executeQuery;
  const found = difference();
  if (found === undefined) return executePreparedQuery;
  logOtherInternals('prepared-queries', found);
  return executeQuery;
}

/** Behind a pooler in transaction mode, each statement may run in another session, so none is prepared. */
const executeUnnamed: Execute = (client, { text }, values) => executeQuery(client, { name: '', text }, values);
