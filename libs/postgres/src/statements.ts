import pg, { type ClientBase } from 'pg';
import { asFailedQuery } from './connections/connection-errors.js';

/**
 * A statement that PostgreSQL parses and plans once per connection. A name must always stand for the same text. A statement
 * with an empty name is parsed at each execution.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/**
 * Executes a statement on a client. Rows are arrays of columns; bigints, also in arrays, are exact strings. Rejects with TypeORM's
 * QueryFailedError for an error of PostgreSQL, or with the error of the connection.
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
/** Arrays of these types. */
const TEXT_ARRAY_TYPES = new Set([1016, 1009, 1015]);

/** Lowest object id of user-defined types, such as enums. Their text is the value, too. */
const FIRST_USER_TYPE = 16_384;

/** Converts the text of a column to its value. */
export type ColumnParser = (text: string) => unknown;

/** The parser of a column whose text is its value. */
export const asText: ColumnParser = (text) => text;

/** The texts of an array, of several dimensions if PostgreSQL's is. pg-types declares another form of this function than it has. */
const { create: arrayOf } = pg.types.arrayParser as unknown as {
  create(this: void, text: string): { parse(): unknown[] };
};
const asTexts: ColumnParser = (text) => arrayOf(text).parse();

/** @param type PostgreSQL's object id of the column's type */
export function columnParserOf(type: number): ColumnParser {
  if (TEXT_ARRAY_TYPES.has(type)) return asTexts;
  return TEXT_TYPES.has(type) || type >= FIRST_USER_TYPE ? asText : (pg.types.getTypeParser(type) as ColumnParser);
}

/** The parsers of {@link EXACT}. */
export const EXACT_TYPES = { getTypeParser: columnParserOf as pg.CustomTypesConfig['getTypeParser'] };

/** The comment, in TypeORM's query builders, of a statement of the platform: see {@link EXACT}. */
export const EXACT_COMMENT = 'exact';

/**
 * The beginning of a statement that the platform runs through TypeORM. Its bigints and texts are exact strings, as those of
 * `Execute` are; without it they come as global parsers make them.
 */
export const EXACT = `/* ${EXACT_COMMENT} */ `;

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
export const executeQuery: Execute = async (client, statement, values) => {
  const query = {
    ...statement,
    values: [...values],
    rowMode: 'array' as const,
    types: EXACT_TYPES,
    queryMode: 'extended',
  };
  const failed = (error: unknown): never => {
    throw asFailedQuery(error, statement, values);
  };
  return (await client.query<never>(query).catch(failed)).rows;
};
