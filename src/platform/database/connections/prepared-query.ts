import pg, { type Connection, type Submittable } from 'pg';
import { serialize } from 'pg-protocol';
import { prepareValue } from 'pg/lib/utils.js';

/**
 * A statement that PostgreSQL parses and plans once a connection. Its name belongs to its text for ever; one without a name
 * is parsed each time.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** What of pg's connection a query class uses. */
interface PreparingConnection {
  readonly stream: { write(bytes: Buffer): unknown };
  /** The texts of the statements that PostgreSQL has parsed, and of those it is about to, by name. */
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
}

type ColumnParser = ((text: string) => unknown) | undefined;

const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute(), serialize.sync()]);

/** Types whose text is the value: bigint, so that it stays exact, text and varchar; and those of users, such as enums. */
const { INT8, TEXT, VARCHAR } = pg.types.builtins;
const TEXT_TYPES = new Set<number>([INT8, TEXT, VARCHAR]);
const FIRST_USER_TYPE = 16_384;

/** How to read the columns of a statement; undefined when all of them stay text. */
type ColumnParsers = readonly ColumnParser[] | undefined;

/** Of each connection, by their names, the statements that PostgreSQL has described there. */
const described = new WeakMap<object, Map<string, ColumnParsers>>();

/**
 * One execution of a named statement, in pg's interface for query classes (`Submittable`). Rows are arrays of columns;
 * bigint columns are strings, exact.
 *
 * pg's own `Query` asks PostgreSQL to describe the columns at each execution, and sends it in four pieces. This one asks
 * when the statement is parsed, and sends the rest of it in one piece: half of the time that pg and the network spend.
 */
export class PreparedQuery<Row extends unknown[]> implements Submittable {
  /** The rows; rejected with the error of PostgreSQL or of the connection. */
  readonly rows: Promise<Row[]>;
  // Where pg looks for what to remember as parsed.
  readonly name: string;
  readonly text: string;
  private readonly found: Row[] = [];
  private resolve!: (rows: Row[]) => void;
  private reject!: (error: unknown) => void;
  private parsers: ColumnParsers;
  private connection: object | undefined;
  private readonly values: (string | Buffer | null)[];

  constructor({ name, text }: Statement, values: readonly unknown[]) {
    this.name = name;
    this.text = text;
    // Here, where a value that cannot be written costs no connection.
    this.values = values.map(prepareValue);
    this.rows = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  submit(connection: Connection): void {
    const { stream, parsedStatements, submittedNamedStatements } = connection as unknown as PreparingConnection;
    const { name, text } = this;
    this.connection = connection;
    const pieces = [serialize.bind({ statement: name, values: this.values }), EXECUTE_AND_SYNC];
    if (parsedStatements[name] === undefined && submittedNamedStatements[name] === undefined) {
      if (name !== '') submittedNamedStatements[name] = text;
      pieces.unshift(serialize.parse({ name, text }), serialize.describe({ type: 'S', name }));
    } else {
      this.parsers = described.get(connection)?.get(name);
    }
    stream.write(Buffer.concat(pieces));
  }

  /** Only of the first execution on a connection. */
  handleRowDescription({ fields }: { fields: readonly { dataTypeID: number }[] }): void {
    const parsers = fields.map(({ dataTypeID }): ColumnParser =>
      TEXT_TYPES.has(dataTypeID) || dataTypeID >= FIRST_USER_TYPE
        ? undefined
        : (pg.types.getTypeParser(dataTypeID) as ColumnParser),
    );
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
    this.resolve(this.found);
  }

  handleError(error: unknown): void {
    this.reject(error);
  }

  // What pg tells its query classes besides, and nobody needs to know here.
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

function readColumn(text: string | null, parser: ColumnParser): unknown {
  return text === null || parser === undefined ? text : parser(text);
}
