import { createHash, randomBytes } from 'node:crypto';
import type { DataSource, QueryRunner } from 'typeorm';
import { ApiError } from '../../errors/api-error.js';
import { StartupError } from '../../errors/startup-error.js';
import { TAKES_ANY_TIME } from '../schema/schema-lock.js';

/*
 * An export is a script of SQL, which `import` and `psql -v ON_ERROR_STOP=1 -f` run alike: in one transaction, on a database
 * with the same migrations and no rows. Each statement is one line. The rows of a table stand between its COPY and a line
 * `\.`, in the text format of COPY. The last line is the SHA-256 of all lines before it, as a comment.
 */

/** The beginning of the first line. */
export const EXPORT_HEADER = '-- Export of a petstore database, ';

/** The beginning of the last line. */
export const CHECKSUM = '-- sha256 ';

/** The beginning of the statement that refuses a database with rows. */
export const EMPTINESS_CHECK = 'DO $empty$';

/** Attempts to close a cursor; each waits a few seconds for the connection. */
const CLOSE_ATTEMPTS = 20;

/** SQLSTATE of a missing right. */
const NO_RIGHT = '42501';

/** Rows of one FETCH: few enough for rows of 64 KiB and more. */
const FETCH_ROWS = 500;

/**
 * Settings for texts of values that every PostgreSQL server reads alike, without time limits: a reader that pauses would end
 * the transaction. With `row_security` off, PostgreSQL refuses to read a table of which it would hide rows.
 */
const SETTINGS = `
  SELECT set_config(name, value, true) FROM pg_settings JOIN (VALUES
    ('statement_timeout', '0'), ('transaction_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
    ('datestyle', 'ISO'), ('intervalstyle', 'postgres'), ('timezone', 'UTC'), ('extra_float_digits', '3'),
    ('bytea_output', 'hex'), ('row_security', 'off'), ('synchronize_seqscans', 'off')) AS wanted (parameter, value)
  ON lower(name) = parameter`;

/** Objects in all schemas but PostgreSQL's own, except those of extensions. */
const OURS = `c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)' AND NOT EXISTS (
  SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`;

/** The tables that migrations write themselves. */
const OF_MIGRATIONS = `('schema_migration', 'typeorm_metadata')`;

/** PostgreSQL computes generated columns again. ONLY excludes tables that inherit from the table, which are listed themselves. */
const TABLES = `
  SELECT c.oid::regclass::text AS name, CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || c.oid::regclass AS source,
    coalesce(json_agg(quote_ident(attname) ORDER BY attnum) FILTER (WHERE attname IS NOT NULL), '[]') AS columns
  FROM pg_class c LEFT JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
  WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ${OF_MIGRATIONS} AND ${OURS}
  GROUP BY c.oid, relkind ORDER BY c.oid::regclass::text COLLATE "C"`;

/** Rows may refer to later rows, so foreign keys are checked at the end. The effects of triggers are in the export. */
const CONSTRAINTS = `
  SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', c.oid::regclass, conname) AS change,
    format('ALTER TABLE %s ADD CONSTRAINT %I %s;', c.oid::regclass, conname, pg_get_constraintdef(k.oid)) AS undo
  FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid WHERE contype = 'f' AND conparentid = 0 AND ${OURS}
  UNION ALL SELECT format('ALTER TABLE %s DISABLE TRIGGER %I;', c.oid::regclass, tgname),
    format('ALTER TABLE %s ENABLE %s TRIGGER %I;', c.oid::regclass,
      CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' END, tgname)
  FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
  WHERE NOT tgisinternal AND tgparentid = 0 AND tgenabled <> 'D' AND ${OURS}`;

/** `setval` is not transactional. RESTART gives the sequence a new file first, which a rollback removes. */
const SEQUENCES = `
  SELECT format('ALTER SEQUENCE %1$s RESTART; SELECT setval(%1$L, %2$s);', oid::regclass, last) AS text
  FROM (
    SELECT c.oid, pg_sequence_last_value(seqrelid) AS last FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid
    WHERE ${OURS} AND NOT EXISTS (
      SELECT FROM pg_depend d JOIN pg_class t ON t.oid = refobjid
      WHERE d.classid = 'pg_class'::regclass AND objid = c.oid AND t.relname IN ${OF_MIGRATIONS})
    OFFSET 0) sequence
  WHERE last IS NOT NULL`;

interface Table {
  readonly name: string;
  /** What to select from. */
  readonly source: string;
  readonly columns: readonly string[];
}

export interface ExportOptions {
  /** The version of the service, for the reader of the export. */
  readonly service: string;
  /**
   * True: the connection is free between two statements, because requests need the embedded engine's only connection. The
   * database first copies the rows of the snapshot; requests wait for that.
   */
  readonly sharesConnection: boolean;
  /** Takes the text of the export in order, and is awaited. */
  readonly write: (text: string) => Promise<void>;
  /** Called with the numbers of rows written and to write. */
  readonly onProgress?: (done: number, total: number) => void | Promise<void>;
}

/** The numbers of rows that an export or import has transferred. */
export interface TransferSummary {
  readonly rows: number;
  readonly tables: { readonly name: string; rows: number }[];
}

/**
 * Writes all rows of all tables of all schemas, and the states of the sequences, as of one moment. Concurrent changes are not
 * included. Needs the right to read all tables and to use all sequences. Memory is bounded by FETCH_ROWS rows.
 *
 * @throws StartupError when there is no schema, or a table may not be read; ApiError UNAVAILABLE; any error of PostgreSQL or `write`
 */
export async function exportDatabase(dataSource: DataSource, options: ExportOptions): Promise<TransferSummary> {
  const queryRunner = dataSource.createQueryRunner('master');
  queryRunner.data[TAKES_ANY_TIME] = true;
  const cursor = `petstore_export_${randomBytes(4).toString('hex')}`;
  try {
    await queryRunner.startTransaction('REPEATABLE READ');
    await queryRunner.query(SETTINGS);
    const tables = (await queryRunner.query(TABLES)) as Table[];
    if (tables.length === 0) throw new StartupError('The database has no schema, so there is nothing to export.');
    const script = await scriptAround(queryRunner, tables, options.service);
    const total = options.sharesConnection ? 0 : await count(queryRunner, tables);
    const lines = tables.map(
      ({ source, columns }, index) => `SELECT ${index} AS "table", ${lineOf(columns)} AS line FROM ${source}`,
    );
    const hold = options.sharesConnection ? 'WITH HOLD' : '';
    await queryRunner.query(`DECLARE ${cursor} NO SCROLL CURSOR ${hold} FOR ${lines.join(' UNION ALL ')}`);
    if (!options.sharesConnection) return await writeScript(queryRunner, cursor, tables, script, options, total);
    await queryRunner.commitTransaction();
    await queryRunner.release();
    return await writeScript({ query: (text) => dataSource.query(text) }, cursor, tables, script, options, total);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code !== NO_RIGHT) throw error;
    const advice = 'An export holds the tables of all schemas. Run it as the owner, or grant the right';
    throw new StartupError(`PostgreSQL refuses: ${message}. ${advice}.`, { cause: error });
  } finally {
    if (queryRunner.isTransactionActive) await queryRunner.rollbackTransaction().catch(() => undefined);
    if (!queryRunner.isReleased) await queryRunner.release();
    if (options.sharesConnection) await closeCursor(dataSource, cursor);
  }
}

/** Closes a held cursor, which keeps a copy of all rows. Repeats that while other statements occupy the connection. */
async function closeCursor(dataSource: DataSource, cursor: string): Promise<void> {
  for (let attempt = 0; attempt < CLOSE_ATTEMPTS; attempt++) {
    const error: unknown = await dataSource.query(`CLOSE ${cursor}`).catch((failure: unknown) => failure);
    if (!(error instanceof ApiError)) return;
  }
}

/** The statements before and after the rows. */
async function scriptAround(queryRunner: QueryRunner, tables: Table[], service: string): Promise<[string[], string[]]> {
  const [{ server_version: version } = {}] = (await queryRunner.query('SHOW server_version')) as [
    Record<string, string>,
  ];
  const migrations = (await queryRunner.query('SELECT name FROM schema_migration ORDER BY id')) as { name: string }[];
  const constraints = (await queryRunner.query(CONSTRAINTS)) as { change: string; undo: string }[];
  const sequences = (await queryRunner.query(SEQUENCES)) as { text: string }[];
  const head = [
    `${EXPORT_HEADER}${new Date().toISOString()}, service ${service}, PostgreSQL ${version}`,
    'BEGIN;',
    `SET LOCAL client_encoding = 'UTF8'; SET LOCAL intervalstyle = 'postgres';`,
    `SELECT set_config(name, '0', true) FROM pg_settings WHERE name ~ '^(statement|transaction|idle_in_transaction_session)_timeout$';`,
    `LOCK TABLE ${tables.map(({ name }) => name).join(', ')} IN ACCESS EXCLUSIVE MODE;`,
    sameSchemaCheck(migrations, service),
    ...constraints.map(({ change }) => change),
    emptinessCheck(tables),
  ];
  const end = [
    'SET CONSTRAINTS ALL IMMEDIATE;',
    ...constraints.map(({ undo }) => undo).reverse(),
    ...sequences.map(({ text }) => text),
    'COMMIT;',
  ];
  return [head, end];
}

function sameSchemaCheck(migrations: readonly { name: string }[], service: string): string {
  const names = migrations.map(({ name }) => literal(name)).join(', ');
  return (
    `DO $check$ DECLARE found text; BEGIN SELECT string_agg(coalesce('the database lacks ' || e.name, 'the export lacks ' || m.name), '; ') INTO found ` +
    `FROM schema_migration m FULL JOIN unnest(ARRAY[${names}]::text[]) e (name) ON e.name = m.name WHERE e.name IS NULL OR m.name IS NULL; ` +
    `IF found IS NOT NULL THEN RAISE EXCEPTION 'The export has another schema: %. ` +
    `Import it with the version of the service that wrote it (${service}), and migrate then.', found; END IF; END $check$;`
  );
}

function emptinessCheck(tables: readonly Table[]): string {
  const values = tables.map(({ name }) => `(${literal(name)}, EXISTS (SELECT FROM ${name}))`).join(', ');
  return (
    `${EMPTINESS_CHECK} DECLARE found text; BEGIN SELECT string_agg(name, ', ') INTO found FROM (VALUES ${values}) t (name, filled) WHERE filled; ` +
    `IF found IS NOT NULL THEN RAISE EXCEPTION 'The database is not empty: it holds rows of %. ` +
    `Take an empty one, or delete what this one holds with --replace.', found; END IF; END $empty$;`
  );
}

async function count(queryRunner: QueryRunner, tables: readonly Table[]): Promise<number> {
  const counts = tables.map(({ source }) => `(SELECT count(*) FROM ${source})`);
  const [row] = (await queryRunner.query(`SELECT ${counts.join(' + ')} AS total`)) as [{ total: string }];
  return Number(row.total);
}

/** Writes the statements before the rows, the rows of the cursor, the statements after them, and the checksum. */
async function writeScript(
  runner: { query(text: string): Promise<unknown> },
  cursor: string,
  tables: readonly Table[],
  [head, end]: [string[], string[]],
  { write, onProgress }: ExportOptions,
  total: number,
): Promise<TransferSummary> {
  const hash = createHash('sha256');
  const writeLines = async (lines: readonly string[]): Promise<void> => {
    const text = `${lines.join('\n')}\n`;
    hash.update(text);
    await write(text);
  };
  await writeLines(head);
  const summary = { rows: 0, tables: tables.map(({ name }) => ({ name, rows: 0 })) };
  let open: number | undefined;
  for (;;) {
    const rows = (await runner.query(`FETCH ${FETCH_ROWS} FROM ${cursor}`)) as { table: number; line: string }[];
    const lines: string[] = [];
    for (const { table, line } of rows) {
      if (table !== open) {
        if (open !== undefined) lines.push('\\.');
        lines.push(copyStatement(tables[table] as Table));
        open = table;
      }
      lines.push(line);
      (summary.tables[table] as { rows: number }).rows++;
    }
    if (rows.length === 0) break;
    await writeLines(lines);
    summary.rows += rows.length;
    await onProgress?.(summary.rows, total);
  }
  if (open !== undefined) await writeLines(['\\.']);
  await writeLines(end);
  await write(`${CHECKSUM}${hash.digest('hex')}\n`);
  return summary;
}

/** The SQL expression of a row in the text format of COPY. */
function lineOf(columns: readonly string[]): string {
  const escapes = [
    ['\\\\', '\\\\\\\\'],
    ['\\n', '\\\\n'],
    ['\\r', '\\\\r'],
    ['\\t', '\\\\t'],
  ];
  const values = columns.map((column) => {
    const escaped = escapes.reduce((text, [from, to]) => `replace(${text}, E'${from}', E'${to}')`, `${column}::text`);
    return `coalesce(${escaped}, E'\\\\N')`;
  });
  return values.join(` || E'\\t' || `) || `''`;
}

function copyStatement({ name, columns }: Table): string {
  return `COPY ${name}${columns.length > 0 ? ` (${columns.join(', ')})` : ''} FROM stdin;`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The names of all tables that an import fills, quoted. */
export async function tableNames(queryRunner: QueryRunner): Promise<string[]> {
  return ((await queryRunner.query(TABLES)) as Table[]).map(({ name }) => name);
}
