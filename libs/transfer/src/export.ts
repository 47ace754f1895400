import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { StartupError } from '#runtime';
import { EXACT } from '#postgres';
import type { Application } from '#settings';

/*
 * An export is a script of SQL, which `import` and `psql -v ON_ERROR_STOP=1 -f` run alike: in one transaction, on a database
 * with the same migrations and no rows. Each statement is one line. The rows of a table stand between its COPY and a line
 * `\.`, in the text format of COPY. The first line names the format and the service that wrote the export. The last line is the SHA-256 of all lines before it, as a comment.
 */

/** The beginning of the first line. */
export const exportHeader = (product: string): string => `-- Export of a ${product} database, `;

/** The format that this version writes and reads. Exports without a number have it, too. */
export const EXPORT_FORMAT = 2;

/** The beginning of the last line. */
export const CHECKSUM = '-- sha256 ';

type ExportedService = Pick<Application, 'product' | 'release'>;

const FETCH_ROWS = 500;

/**
 * Settings for texts of values that every PostgreSQL server reads alike, without time limits: a reader that pauses would end
 * the transaction. With `row_security` off, PostgreSQL refuses to read a table of which it would hide rows. The collation
 * matters: in a Turkish database `lower` turns IntervalStyle into ıntervalstyle.
 */
const SETTINGS = `${EXACT}
  SELECT set_config(name, value, true) FROM pg_settings JOIN (VALUES
    ('statement_timeout', '0'), ('transaction_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
    ('datestyle', 'ISO'), ('intervalstyle', 'postgres'), ('timezone', 'UTC'), ('extra_float_digits', '3'),
    ('bytea_output', 'hex'), ('row_security', 'off'), ('synchronize_seqscans', 'off'),
    ('standard_conforming_strings', 'on'), ('quote_all_identifiers', 'off')) AS wanted (parameter, value)
  ON lower(name COLLATE "C") = parameter`;

/** Objects in all schemas but PostgreSQL's own, except those of extensions. */
const OURS = `c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)' AND NOT EXISTS (
  SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`;

/**
 * All tables but those that migrations write themselves. PostgreSQL computes generated columns again. ONLY excludes tables that inherit from
 * the table, which are listed themselves.
 */
const TABLES = `${EXACT}
  SELECT c.oid::regclass::text AS name, CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || c.oid::regclass AS source,
    json_agg(quote_ident(attname) ORDER BY attnum)::text AS columns
  FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
  WHERE relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ('schema_migration', 'typeorm_metadata') AND ${OURS}
  GROUP BY c.oid, relkind ORDER BY c.oid::regclass::text COLLATE "C"`;

/**
 * Statements before and after the rows. Rows may refer to later rows, so foreign keys are checked at the end. The effects of
 * triggers are in the export. `setval` is not transactional, so nothing that can fail follows it: the order after the rows is the
 * opposite.
 */
const AROUND = `${EXACT}
  SELECT '' AS before, format('SELECT setval(%L, %s);', oid::regclass, last) AS after
  FROM (
    SELECT c.oid, pg_sequence_last_value(seqrelid) AS last FROM pg_sequence JOIN pg_class c ON c.oid = seqrelid
    WHERE ${OURS} AND relname <> 'schema_migration_id_seq' OFFSET 0) sequence
  WHERE last IS NOT NULL
  UNION ALL SELECT format('ALTER TABLE %s DROP CONSTRAINT %I;', c.oid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s;', c.oid::regclass, conname, pg_get_constraintdef(k.oid))
  FROM pg_constraint k JOIN pg_class c ON c.oid = conrelid WHERE contype = 'f' AND conparentid = 0 AND ${OURS}
  UNION ALL SELECT format('ALTER TABLE %s DISABLE TRIGGER %I;', c.oid::regclass, tgname),
    format('ALTER TABLE %s ENABLE %s TRIGGER %I;', c.oid::regclass,
      CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' END, tgname)
  FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
  WHERE NOT tgisinternal AND tgparentid = 0 AND tgenabled <> 'D' AND ${OURS}`;

interface Table {
  readonly name: string;
  /** What to select from. */
  readonly source: string;
  readonly columns: readonly string[];
}

/**
 * Writes all rows of all tables of all schemas, and the states of the sequences, as of one moment. Concurrent changes are not
 * included. Needs the right to read all tables and to use all sequences. Memory is bounded by FETCH_ROWS rows.
 *
 * @param sharesConnection true: the connection is free between two statements, because requests need the embedded engine's
 *   only connection. The database first copies the rows of the snapshot; requests wait for that
 * @param write takes the text of the export in order, and is awaited
 * @returns the number of rows
 * @throws StartupError when there is no schema; ApiError UNAVAILABLE; any error of PostgreSQL or `write`
 */
export async function exportDatabase(
  dataSource: DataSource,
  service: ExportedService,
  sharesConnection: boolean,
  write: (text: string) => Promise<void>,
): Promise<number> {
  const queryRunner = dataSource.createQueryRunner('master');
  const cursor = `${service.product.name}_export_${randomBytes(4).toString('hex')}`;
  const hash = createHash('sha256');
  const writeLines = async (lines: readonly string[]): Promise<void> => {
    const text = `${lines.join('\n')}\n`;
    hash.update(text);
    await write(text);
  };
  try {
    await queryRunner.startTransaction('REPEATABLE READ');
    await queryRunner.query(SETTINGS);
    const found = (await queryRunner.query(TABLES)) as (Omit<Table, 'columns'> & { columns: string })[];
    const tables = found.map((table): Table => ({ ...table, columns: JSON.parse(table.columns) as string[] }));
    if (tables.length === 0) throw new StartupError('The database has no schema, so there is nothing to export.');
    const [head, end] = await scriptAround(queryRunner, tables, service);
    const hold = sharesConnection ? 'WITH HOLD' : '';
    await queryRunner.query(`DECLARE ${cursor} NO SCROLL CURSOR ${hold} FOR ${tables.map(copy).join(' UNION ALL ')}`);
    if (sharesConnection) {
      await queryRunner.commitTransaction();
      await queryRunner.release();
    }
    await writeLines(head);
    const runner: Pick<DataSource, 'query'> = sharesConnection ? dataSource : queryRunner;
    // Each table has two lines beside its rows.
    let rows = -2 * tables.length;
    for (;;) {
      const lines = await runner.query<{ line: string }[]>(`${EXACT}FETCH ${FETCH_ROWS} FROM ${cursor}`);
      if (lines.length === 0) break;
      rows += lines.length;
      await writeLines(lines.map(({ line }) => line));
    }
    await writeLines(end);
    await write(`${CHECKSUM}${hash.digest('hex')}\n`);
    return rows;
  } finally {
    if (queryRunner.isTransactionActive) await queryRunner.rollbackTransaction().catch(() => undefined);
    if (!queryRunner.isReleased) await queryRunner.release();
    // It keeps a copy of all rows.
    if (sharesConnection) await dataSource.query(`CLOSE ${cursor}`).catch(() => undefined);
  }
}

/** The query for the lines of a table: its COPY, its rows in the text format of COPY, and their end. */
function copy({ name, source, columns }: Table): string {
  const values = columns.map(
    (column) => String.raw`coalesce(replace(replace(replace(replace(${column}::text,
      E'\\', E'\\\\'), E'\n', E'\\n'), E'\r', E'\\r'), E'\t', E'\\t'), E'\\N')`,
  );
  return `SELECT ${pg.escapeLiteral(`COPY ${name} (${columns.join(', ')}) FROM stdin;`)} AS line
    UNION ALL SELECT ${values.join(` || E'\\t' || `)} FROM ${source} UNION ALL SELECT '\\.'`;
}

async function scriptAround(
  queryRunner: QueryRunner,
  tables: Table[],
  { product, release }: ExportedService,
): Promise<[string[], string[]]> {
  const migrations = (await queryRunner.query(`${EXACT}SELECT name FROM schema_migration`)) as { name: string }[];
  const around = (await queryRunner.query(AROUND)) as { before: string; after: string }[];
  const names = tables.map(({ name }) => name).join(', ');
  const filled = tables.map(({ name }) => `(${pg.escapeLiteral(name)}, EXISTS (SELECT 1 FROM ${name}))`).join(', ');
  const known = migrations.map(({ name }) => pg.escapeLiteral(name)).join(', ');
  const head = [
    `${exportHeader(product.name)}format ${EXPORT_FORMAT}, ${new Date().toISOString()}, service ${release}`,
    'BEGIN;',
    `SET LOCAL client_encoding = 'UTF8'; SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'postgres'; SET LOCAL xmloption = content; SET LOCAL array_nulls = on; SET LOCAL standard_conforming_strings = on;`,
    `SELECT set_config(name, '0', true) FROM pg_settings WHERE name ~ '^(statement|transaction|idle_in_transaction_session)_timeout$';`,
    `LOCK TABLE ${names} IN ACCESS EXCLUSIVE MODE;`,
    refuseIfAny(
      `coalesce(m.name, e.name) FROM schema_migration m FULL JOIN unnest(ARRAY[${known}]) e (name) USING (name) WHERE m.name IS NULL OR e.name IS NULL`,
      `Only one of the export and the database has %. Import with the version of the service that wrote the export (${release}), and migrate then.`,
    ),
    ...around.map(({ before }) => before).filter(Boolean),
    refuseIfAny(
      `name FROM (VALUES ${filled}) t (name, filled) WHERE filled`,
      'The database is not empty: it holds rows of %. Import into an empty one.',
    ),
  ];
  const end = ['SET CONSTRAINTS ALL IMMEDIATE;', ...around.map(({ after }) => after).reverse(), 'COMMIT;'];
  return [head, end];
}

/** A statement that fails with a message if a query finds names, which replace % in it. */
function refuseIfAny(query: string, message: string): string {
  return (
    `DO $$ DECLARE found text; BEGIN found := (SELECT string_agg(name, ', ') FROM (SELECT ${query}) q (name)); ` +
    `IF found IS NOT NULL THEN RAISE EXCEPTION '${message}', found; END IF; END $$;`
  );
}
