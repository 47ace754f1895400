import pg, { type ClientBase, type Connection, type Submittable } from 'pg';
import { serialize } from 'pg-protocol';
import { differenceOfPg, logOtherInternals, prepareValue } from '#internals';

/**
 * A statement that PostgreSQL parses and plans once per connection. A name must always stand for the same text. A statement
 * with an empty name is parsed at each execution.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/**
 * Executes a statement on a client. Rows are arrays of columns; bigint columns are exact strings. Rejects with the error of
 * PostgreSQL or of the connection.
 *
 * Statements of the platform return bigints and texts only: all other types have parsers that are global, which modules
 * may replace (`pg.types.setTypeParser`), and texts that depend on settings of the session.
 */
export type Execute = <Row extends unknown[]>(
  client: ClientBase,
  statement: Statement,
  values: readonly unknown[],
) => Promise<Row[]>;

/** Types whose text is the value: bigint, so that it stays exact, text and varchar. */
const { INT8, TEXT, VARCHAR } = pg.types.builtins;
const TEXT_TYPES = new Set<number>([INT8, TEXT, VARCHAR]);

/** Lowest object id of user-defined types, such as enums. Their text is the value, too. */
const FIRST_USER_TYPE = 16_384;

/** Converts the text of a column to its value. */
type ColumnParser = (text: string) => unknown;

const asText: ColumnParser = (text) => text;

/** @param type PostgreSQL's object id of the column's type */
function columnParserOf(type: number): ColumnParser {
  return TEXT_TYPES.has(type) || type >= FIRST_USER_TYPE ? asText : (pg.types.getTypeParser(type) as ColumnParser);
}

const EXACT_TYPES = { getTypeParser: columnParserOf as pg.CustomTypesConfig['getTypeParser'] };

/** The comment, in TypeORM's query builders, of a statement of the platform: see {@link EXACT}. */
export const EXACT_COMMENT = 'exact';

/**
 * The beginning of a statement that the platform runs through TypeORM. Its bigints and texts are exact strings, as those of
 * `Execute` are; without it they come as global parsers make them.
 */
export const EXACT = `/* ${EXACT_COMMENT} */ `;

/** What a client executes for a statement without parsers of its own, as TypeORM sends them. */
export function exactly(query: unknown): unknown {
  return typeof query === 'string' && query.startsWith(EXACT) ? { text: query, types: EXACT_TYPES } : query;
}

/**
 * SQL for a point in time as a number that depends on no setting of the session: ms since 1970, or `Infinity` or `-Infinity`.
 * `timeOf` reads it.
 */
export function epochOf(time: string): string {
  return `floor(extract(epoch FROM ${time}) * 1000)::text`;
}

/** The largest distance in ms of a Date from 1970 (ECMA-262). PostgreSQL's times go further. */
const MAX_TIME = 8.64e15;

/** The time of a column that was selected by `epochOf`. One beyond the range of Date is its end; an invalid Date if it is no number. */
export function timeOf(epoch: string): Date {
  return new Date(Math.max(-MAX_TIME, Math.min(MAX_TIME, epoch.trim() === '' ? NaN : Number(epoch))));
}

/** Executes a statement by pg's own query class. */
export const executeQuery: Execute = async (client, { name, text }, values) => {
  const query = {
    name,
    text,
    values: [...values],
    rowMode: 'array' as const,
    types: EXACT_TYPES,
    queryMode: 'extended',
  };
  const { rows } = await client.query<never>(query);
  return rows;
};

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
    const settle = (error: unknown, rows: never[] = []): void => (error === undefined ? resolve(rows) : reject(error));
    client.query(new PreparedQuery(statement, values, settle));
  });

/**
 * How statements are executed: by our own query class if the fast path `prepared-queries` is on, else by pg's. If pg's
 * internals differ from the known ones, logs one line and chooses pg's class.
 *
 * @param difference for tests
 */
export function executeOf(
  { databaseDirectUrl, fastPaths }: { readonly databaseDirectUrl: string | undefined; readonly fastPaths: boolean },
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
