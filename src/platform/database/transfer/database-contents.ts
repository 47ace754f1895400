import type { ColumnDescription } from '../export-format/export-format.js';

/** Runs a statement; each row is an array of its columns, as text. */
export type Run = (statement: string) => Promise<(string | null)[][]>;

/** The table of applied migrations: no data, but the version of the schema. */
const HISTORY = 'schema_migration';

/** A table whose rows travel. */
export interface TableContents {
  readonly name: string;
  /** Partitioned tables hold the rows of their partitions, which are not listed themselves. */
  readonly isPartitioned: boolean;
  /** Without generated columns, which PostgreSQL computes again. */
  readonly columns: readonly ColumnDescription[];
}

/** What is in the database: tables and sequences of the current schema, except those of extensions. */
export interface DatabaseContents {
  readonly schema: string;
  /** In the order of their application. */
  readonly migrations: readonly string[];
  readonly tables: readonly TableContents[];
  /** By name, and the text of a query for its last value and whether that was given. */
  readonly sequences: readonly { readonly name: string; readonly state: string }[];
}

const IN_SCHEMA = `relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())`;

const OF_EXTENSION = `EXISTS (
  SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`;

const TABLES = `
  SELECT relname, relkind = 'p', (
    SELECT coalesce(json_agg(json_build_object('name', attname, 'type', format_type(atttypid, atttypmod)) ORDER BY attnum), '[]')
    FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '')
  FROM pg_class c
  WHERE ${IN_SCHEMA} AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> '${HISTORY}' AND NOT ${OF_EXTENSION}
  ORDER BY relname COLLATE "C"`;

/** The right to use a sequence is enough, but then one that was never used cannot say where it begins but by its definition. */
const SEQUENCES = `
  SELECT relname, CASE WHEN has_sequence_privilege(c.oid, 'SELECT')
    THEN format('SELECT last_value, is_called FROM %I.%I', current_schema(), relname)
    ELSE format('SELECT coalesce(pg_sequence_last_value(seqrelid), seqstart), pg_sequence_last_value(seqrelid) IS NOT NULL
      FROM pg_sequence WHERE seqrelid = %s', c.oid) END
  FROM pg_class c
  WHERE ${IN_SCHEMA} AND relkind = 'S' AND NOT ${OF_EXTENSION} AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND refobjid = to_regclass('${HISTORY}'))
  ORDER BY relname COLLATE "C"`;

/** Looks into the catalog of the database. */
export async function contentsOf(run: Run): Promise<DatabaseContents> {
  const [[schema, history] = []] = await run(`SELECT current_schema(), to_regclass('${HISTORY}') IS NOT NULL`);
  const migrations = history === 't' ? await run(`SELECT name FROM ${HISTORY} ORDER BY id`) : [];
  const tables = await run(TABLES);
  const sequences = await run(SEQUENCES);
  return {
    schema: schema as string,
    migrations: migrations.map(([name]) => name as string),
    tables: tables.map(([name, isPartitioned, columns]) => ({
      name: name as string,
      isPartitioned: isPartitioned === 't',
      columns: JSON.parse(columns as string) as ColumnDescription[],
    })),
    sequences: sequences.map(([name, state]) => ({ name: name as string, state: state as string })),
  };
}

/** A name in SQL. */
export function identifier(...names: string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.');
}

/** The columns of a table in SQL; empty for a table without any. */
export function columnList({ columns }: TableContents): string {
  return columns.map(({ name }) => identifier(name)).join(', ');
}
