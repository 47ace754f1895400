import pg, { type ClientBase } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { StartupError } from '#runtime';
import type { MigrationSource } from '#settings';
import {
  copyRows,
  databaseFault,
  EXACT,
  isOutcomeUnknown,
  migrate,
  openDatabase,
  type PostgresConfig,
  withSchemaLock,
} from '#postgres';

/** Size of a slice in bytes of stored rows. Its last row may exceed it. */
const SLICE_BYTES = 1024 * 1024;

/** Estimate of the bytes that a row takes beside its values. */
const ROW_OVERHEAD_BYTES = 24;

/**
 * Settings of both transactions: texts of values that either server reads as the other one writes them, and no time limits. With
 * `row_security` off, PostgreSQL refuses to read a table of which it would hide rows.
 */
const SETTINGS = [
  ...["datestyle = 'ISO'", "intervalstyle = 'postgres'", "timezone = 'UTC'", 'extra_float_digits = 3'],
  ...["bytea_output = 'hex'", "lc_monetary = 'C'", "xmloption = 'content'", 'row_security = off'],
  ...['statement_timeout = 0', 'idle_in_transaction_session_timeout = 0'],
]
  .map((setting) => `SET LOCAL ${setting};`)
  .join(' ');

/**
 * Tables, sequences and materialized views of all schemas, without those of PostgreSQL, of extensions and of the history of migrations.
 * PostgreSQL computes generated columns again.
 */
const RELATIONS = `${EXACT}
  SELECT relkind::text AS kind, c.oid::regclass::text AS name, string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns,
    string_agg(format('coalesce(pg_column_size(%I), 0)::float8', attname), ' + ') AS size
  FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
  WHERE relkind IN ('r', 'p', 'S', 'm') AND relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'
    AND relname !~ '^(schema_migration|typeorm_metadata)(_id_seq)?$'
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
  GROUP BY c.oid, relkind ORDER BY c.oid`;

/** Which of some relations exist, and the statements that make the database anew. */
const FOUND = `${EXACT}
  SELECT format('DROP DATABASE %1$I; CREATE DATABASE %1$I OWNER %2$I', current_database(), current_user) AS anew,
    (SELECT string_agg(name, ', ') FROM unnest($1::text[]) name WHERE to_regclass(name) IS NOT NULL) AS found,
    (SELECT string_agg(name, ', ') FROM unnest($1::text[]) name WHERE to_regclass(name) IS NULL) AS missing`;

/**
 * Statements before and after the rows. Rows may refer to later rows, so foreign keys are added at the end. The effects of triggers
 * are moved themselves. All of it is the owner's right: no superuser is needed.
 */
const AROUND = `${EXACT}
  SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS before,
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS after
  FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND conrelid = ANY ($1::text[]::regclass[])
  UNION ALL SELECT format('ALTER TABLE ONLY %s DISABLE TRIGGER USER', tgrelid::regclass),
    format('ALTER TABLE ONLY %s ENABLE %s TRIGGER %I', tgrelid::regclass,
      CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' END, tgname)
  FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgrelid = ANY ($1::text[]::regclass[])`;

interface Found {
  readonly anew: string;
  readonly found: string | null;
  readonly missing: string | null;
}

/** `kind`: r, p, S or m; `size`: SQL for the stored bytes of a row's values. */
type Relation = Readonly<Record<'kind' | 'name' | 'columns' | 'size', string>>;

/** Neighbouring rows of a table: the places of the first and the last one. */
type Slice = Readonly<Record<'first' | 'last' | 'rows', string>>;

interface Table extends Relation {
  readonly slices: readonly Slice[];
  readonly rows: number;
}

/** What the source has, as of one moment. */
interface Contents {
  readonly tables: readonly Table[];
  /** The statements that set the sequences. */
  readonly sequences: readonly string[];
  readonly views: readonly string[];
  readonly names: readonly string[];
}

type Progress = (done: number, total: number) => void;

/**
 * Moves the rows of all tables and the states of all sequences to a database without tables of the service, which it migrates first.
 * All rows arrive, or none. Memory is bounded by SLICE_BYTES and the longest row. The source stays as it is.
 *
 * @param config selects the target, as the role that owns its schema
 * @param report takes a line for each migration
 * @param progress takes the number of rows that were moved, and of all rows
 * @returns the number of rows
 * @throws StartupError when the target has tables of the service or lacks one of the source; after any failure it says how to make the target anew
 */
export async function moveDatabase(
  source: DataSource,
  config: PostgresConfig,
  migrations: readonly MigrationSource[],
  report: (line: string) => void = () => undefined,
  progress: Progress = () => undefined,
): Promise<number> {
  const target = await openDatabase(config, migrations);
  const reader = source.createQueryRunner('master');
  let isCommitted = false;
  try {
    await reader.startTransaction('REPEATABLE READ');
    await reader.query(SETTINGS);
    const contents = await contentsOf(reader);
    const history = ['schema_migration', 'typeorm_metadata'];
    const { anew, found } = await look(target, [...contents.names, ...history]);
    if (found !== null) {
      throw new StartupError(`The target has ${found} already, and nothing was moved. Give a database without tables.`);
    }
    try {
      await migrate(target, report);
      await withSchemaLock(target, async (writer) => {
        await writer.manager.transaction(() => fill(reader, writer, contents, progress));
        isCommitted = true;
        // The planner needs statistics of the new rows now: autovacuum is late.
        await writer.query(`ANALYZE ${tableNames(contents)}`).catch(() => undefined);
      });
    } catch (error) {
      // A signal after the commit ends only ANALYZE.
      if (!isCommitted) throw error instanceof TypeError ? error : failure(error, anew);
    }
    return rowsOf(contents);
  } finally {
    await reader.release();
    await target.destroy();
  }
}

async function contentsOf(reader: QueryRunner): Promise<Contents> {
  const relations = (await reader.query(RELATIONS)) as Relation[];
  const tables: Table[] = [];
  const sequences: string[] = [];
  for (const relation of relations) {
    const { kind, name, size } = relation;
    if (kind === 'S') {
      const state = `${EXACT}SELECT last_value::text AS last, is_called::text AS called FROM ${name}`;
      const [{ last, called }] = (await reader.query(state)) as [{ last: string; called: string }];
      sequences.push(`${EXACT}SELECT setval(${pg.escapeLiteral(name)}, ${last}, ${called})`);
    } else if (kind !== 'm') {
      const slices = (await reader.query(`${EXACT}
        SELECT min(place)::text AS first, max(place)::text AS last, count(*)::text AS rows
        FROM (SELECT ctid AS place, floor(sum(${ROW_OVERHEAD_BYTES} + ${size}) OVER (ORDER BY ctid ROWS UNBOUNDED PRECEDING) / ${SLICE_BYTES})
          AS slice FROM ONLY ${name}) rows GROUP BY slice ORDER BY slice`)) as Slice[];
      tables.push({ ...relation, slices, rows: slices.reduce((sum, { rows }) => sum + Number(rows), 0) });
    }
  }
  const views = relations.flatMap(({ kind, name }) => (kind === 'm' ? name : []));
  return { tables, sequences, views, names: relations.map(({ name }) => name) };
}

/** Fills the tables that migrations have made, in the transaction of `writer`. */
async function fill(reader: QueryRunner, writer: QueryRunner, contents: Contents, progress: Progress): Promise<void> {
  const { tables, sequences, views, names } = contents;
  const { missing } = await look(writer, names);
  if (missing !== null) {
    throw new StartupError(
      `The migrations did not make ${missing}, which DATA_DIR has. Add a migration, or drop what nobody needs.`,
    );
  }
  await writer.query(SETTINGS);
  const around = (await writer.query(AROUND, [tables.map(({ name }) => name)])) as { before: string; after: string }[];
  for (const { before } of around) await writer.query(before);
  // Migrations may have inserted rows, which the source has, too, unless it has removed them.
  await writer.query(`TRUNCATE ${tableNames(contents)}`);
  const [from, to] = [(await reader.connect()) as ClientBase, (await writer.connect()) as ClientBase];
  let done = 0;
  for (const { name, columns, slices } of tables) {
    for (const { first, last, rows } of slices) {
      const range = `SELECT ${columns} FROM ONLY ${name} WHERE ctid BETWEEN '${first}' AND '${last}'`;
      const lines = await copyRows(from, `COPY (${range}) TO STDOUT`);
      await copyRows(to, `COPY ${name} (${columns}) FROM STDIN`, lines);
      progress((done += Number(rows)), rowsOf(contents));
    }
  }
  for (const { name, rows } of tables) {
    const query = `${EXACT}SELECT count(*)::text AS count FROM ONLY ${name}`;
    const [{ count }] = (await writer.query(query)) as [{ count: string }];
    if (Number(count) !== rows) throw new StartupError(`${name} has ${rows} rows, and ${count} of them arrived.`);
  }
  // No table may be altered while a deferred constraint waits for its check.
  await writer.query('SET CONSTRAINTS ALL IMMEDIATE');
  for (const { after } of around) await writer.query(after);
  for (const view of views) await writer.query(`REFRESH MATERIALIZED VIEW ${view}`);
  // No rollback undoes these, so nothing that can fail follows them.
  for (const statement of sequences) await writer.query(statement);
}

async function look(through: DataSource | QueryRunner, names: readonly string[]): Promise<Found> {
  const [found] = (await through.query(FOUND, [names])) as [Found];
  return found;
}

const tableNames = ({ tables }: Contents): string => tables.map(({ name }) => name).join(', ');

const rowsOf = ({ tables }: Contents): number => tables.reduce((sum, { rows }) => sum + rows, 0);

function failure(error: unknown, anew: string): StartupError {
  const reason = (databaseFault(error) ?? (error as Error)).message.replace(/\.?$/, '.');
  const outcome = isOutcomeUnknown(error) ? 'All rows were moved, or none' : 'No row was moved';
  const advice = `If nobody else uses the database, make it anew (${anew}), and try again.`;
  return new StartupError(`${reason} ${outcome}. ${advice}`, { cause: error });
}
