import pg, { type ClientBase } from 'pg';

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

/** Converts the text of a column to its value; undefined if the text is the value. */
export type ColumnParser = ((text: string) => unknown) | undefined;

/** @param type PostgreSQL's object id of the column's type */
export function columnParserOf(type: number): ColumnParser {
  return TEXT_TYPES.has(type) || type >= FIRST_USER_TYPE ? undefined : (pg.types.getTypeParser(type) as ColumnParser);
}

const TYPES: pg.CustomTypesConfig = {
  getTypeParser: ((type: number) =>
    columnParserOf(type) ?? ((text: string) => text)) as pg.CustomTypesConfig['getTypeParser'],
};

/** Executes a statement by pg's own query class. */
export const executeQuery: Execute = async <Row extends unknown[]>(
  client: ClientBase,
  { name, text }: Statement,
  values: readonly unknown[],
) => {
  const query = { name, text, values: [...values], rowMode: 'array' as const, types: TYPES, queryMode: 'extended' };
  const { rows } = await client.query<Row>(query);
  return rows;
};
