import type { ColumnDescription } from '../export-format/export-format.js';

/** Runs a statement; each row is an array of its columns, as text. */
export type Run = (statement: string) => Promise<(string | null)[][]>;

/** The table of applied migrations. It is not exported as data: the header lists the migrations. */
const HISTORY = 'schema_migration';

/** A table that is exported. */
export interface TableContents {
  readonly name: string;
  /** A partitioned table stands for all its partitions, which are not listed themselves. */
  readonly isPartitioned: boolean;
  /** The columns except generated ones, which PostgreSQL computes again. */
  readonly columns: readonly ColumnDescription[];
}

/** The tables and sequences of the database's current schema, except those of extensions. */
export interface DatabaseContents {
  readonly schema: string;
  /** The applied migrations, in the order of their application. */
  readonly migrations: readonly string[];
  readonly tables: readonly TableContents[];
  /** Name, and the text of a query that returns `last_value` and `is_called`. */
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

/**
 * With the right SELECT, a sequence itself is read. With the right USAGE alone, `pg_sequence_last_value` must do; for a
 * sequence that was never used it is null, and the start comes from the definition. The sequence of the migrations' ids is
 * left out, as their table is.
 */
const SEQUENCES = `
  SELECT relname, CASE WHEN has_sequence_privilege(c.oid, 'SELECT')
    THEN format('SELECT last_value, is_called FROM %I.%I', current_schema(), relname)
    ELSE format('SELECT coalesce(pg_sequence_last_value(seqrelid), seqstart), pg_sequence_last_value(seqrelid) IS NOT NULL
      FROM pg_sequence WHERE seqrelid = %s', c.oid) END
  FROM pg_class c
  WHERE ${IN_SCHEMA} AND relkind = 'S' AND NOT ${OF_EXTENSION} AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND refobjid = to_regclass('${HISTORY}'))
  ORDER BY relname COLLATE "C"`;

/** Reads the contents from the database's catalog. */
export async function contentsOf(run: Run): Promise<DatabaseContents> {
  const [[schema, hasHistory] = []] = await run(`SELECT current_schema(), to_regclass('${HISTORY}') IS NOT NULL`);
  const migrations = hasHistory === 't' ? await run(`SELECT name FROM ${HISTORY} ORDER BY id`) : [];
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

/** Quotes a name, which may be qualified, as an SQL identifier. */
export function identifier(...names: string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join('.');
}

/** The list of a table's columns in SQL; empty for a table without columns. */
export function columnList({ columns }: TableContents): string {
  return columns.map(({ name }) => identifier(name)).join(', ');
}
