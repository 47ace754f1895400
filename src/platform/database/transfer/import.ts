import type { DataSource, QueryRunner } from 'typeorm';
import { StartupError } from '../../errors/startup-error.js';
import { withSchemaLock } from '../schema/schema-lock.js';
import { copyRows } from './copy-rows.js';
import {
  columnList,
  contentsOf,
  type DatabaseContents,
  identifier,
  type Run,
  type TableContents,
} from './database-contents.js';
import { FrameReader, damaged, type ExportHeader } from '../export-format/export-format.js';
import type { TransferSummary } from './export.js';
import { bytesOf } from '../export-format/export-bytes.js';
import { answerOf, clientOf, runOn } from './session.js';

export interface ImportOptions {
  /** True: all existing rows are deleted in the same transaction. False: a database with any row is refused. */
  readonly replace: boolean;
  /** Called after each frame with the numbers of rows read and to read, and awaited. */
  readonly onProgress?: (done: number, total: number) => void | Promise<void>;
}

/**
 * Imports all rows and sequence states of an export into a database of the same schema, in one transaction: if anything
 * fails or the process ends, the database stays unchanged. The transaction locks all tables. Memory is bounded by two
 * frames.
 *
 * Triggers of the schema are disabled, because their effects are in the export. Foreign keys are checked at the end, so rows
 * may refer to later ones. Both need the rights of the owner.
 *
 * @param source the bytes of the export, gzipped or not
 * @throws StartupError when the export is damaged or of another schema, the database holds rows, or PostgreSQL refuses;
 *   ApiError UNAVAILABLE; any error of `source`
 */
export async function importDatabase(
  dataSource: DataSource,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<TransferSummary> {
  const frames = new FrameReader(await bytesOf(source));
  const header = await frames.header();
  return withSchemaLock(dataSource, async (queryRunner) => {
    const run = await runOn(queryRunner);
    await run('BEGIN');
    try {
      await run('SET LOCAL idle_in_transaction_session_timeout = 0');
      const target = await Target.prepare(run, header, options.replace);
      await loadRows(queryRunner, target.contents, header, frames, options);
      await target.complete(header);
      await run('COMMIT');
    } catch (error) {
      await run('ROLLBACK').catch(() => undefined);
      throw withAdvice(error);
    }
    // The planner needs statistics of the new rows now: autovacuum is late, and the embedded engine has none.
    await run('ANALYZE').catch(() => undefined);
    const tables = header.tables.map(({ name, rows }) => ({ name, rows }));
    return { rows: tables.reduce((sum, { rows }) => sum + rows, 0), tables };
  });
}

/** Reads the rows of the export and stores them. */
async function loadRows(
  queryRunner: QueryRunner,
  { schema, tables }: DatabaseContents,
  header: ExportHeader,
  frames: FrameReader,
  { onProgress }: ImportOptions,
): Promise<void> {
  const client = await clientOf(queryRunner);
  const total = header.tables.reduce((sum, { rows }) => sum + rows, 0);
  let done = 0;
  // The next frame is read and checked while PostgreSQL stores the current one.
  let stored = Promise.resolve();
  for (const { name, rows: count, columns } of header.tables) {
    const isPartitioned = tables.some((table) => table.name === name && table.isPartitioned);
    const statement = copyStatement(schema, { name, isPartitioned, columns });
    for (let left = count; left > 0;) {
      const { table, rows, bytes } = await frames.rows();
      if (table !== name || rows > left || rows < 1) throw damaged('its rows are not those of its header');
      await stored;
      stored = answerOf(copyRows(client, statement, bytes));
      // An error is reported by the next `await stored`, which may come much later.
      stored.catch(() => undefined);
      left -= rows;
      done += rows;
      await onProgress?.(done, total);
    }
  }
  await stored;
  await frames.end();
}

/**
 * The COPY statement of a table, with the columns in the order of the export. FREEZE saves a later vacuum; PostgreSQL allows
 * it for tables truncated in the same transaction, but not for partitioned ones.
 */
function copyStatement(schema: string, table: TableContents): string {
  const columns = columnList(table);
  const freeze = table.isPartitioned ? '' : ' WITH (FREEZE)';
  return `COPY ${identifier(schema, table.name)}${columns === '' ? '' : ` (${columns})`} FROM STDIN${freeze}`;
}

const OUR_TABLES = `(
  SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace AND nspname = current_schema()
  WHERE relkind IN ('r', 'p'))`;

const FOREIGN_KEYS = `
  SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND conrelid IN ${OUR_TABLES}`;

const TRIGGERS = `
  SELECT format('ALTER TABLE %s DISABLE TRIGGER %I', tgrelid::regclass, tgname),
    format('ALTER TABLE %s ENABLE %s TRIGGER %I', tgrelid::regclass,
      CASE tgenabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' END, tgname)
  FROM pg_trigger WHERE NOT tgisinternal AND tgparentid = 0 AND tgenabled <> 'D' AND tgrelid IN ${OUR_TABLES}`;

/** The empty tables that an import fills. */
class Target {
  private constructor(
    private readonly run: Run,
    readonly contents: DatabaseContents,
    /** Statements that restore triggers and foreign keys. */
    private readonly restore: readonly string[],
  ) {}

  /** Checks that schema and contents permit the import, locks and empties the tables, and drops or disables constraints. */
  static async prepare(run: Run, header: ExportHeader, replace: boolean): Promise<Target> {
    const contents = await contentsOf(run);
    checkSchema(header, contents);
    const names = contents.tables.map(({ name }) => identifier(contents.schema, name));
    if (names.length > 0) await run(`LOCK TABLE ${names.join(', ')} IN ACCESS EXCLUSIVE MODE`);
    if (!replace) await checkEmptiness(run, contents);
    const restore: string[] = [];
    for (const query of [TRIGGERS, FOREIGN_KEYS]) {
      for (const [change, undo] of await run(query)) {
        await run(change as string);
        restore.unshift(undo as string);
      }
    }
    if (names.length > 0) await run(`TRUNCATE ${names.join(', ')}`);
    return new Target(run, contents, restore);
  }

  /** Sets the sequences, and restores foreign keys and triggers. */
  async complete({ sequences }: ExportHeader): Promise<void> {
    const { run, contents, restore } = this;
    await run('SET CONSTRAINTS ALL IMMEDIATE');
    for (const { name, lastValue, isCalled } of sequences) {
      const sequence = identifier(contents.schema, name);
      // `setval` is not transactional. RESTART gives the sequence a new file first, which a rollback removes.
      await run(`ALTER SEQUENCE ${sequence} RESTART`);
      await run(`SELECT setval(${literal(sequence)}, ${literal(lastValue)}, ${literal(String(isCalled))})`);
    }
    for (const statement of restore) await run(statement);
  }
}

/** @throws StartupError when the export has other migrations, tables, columns or sequences than the database */
function checkSchema(header: ExportHeader, contents: DatabaseContents): void {
  checkMigrations(header, contents.migrations);
  const inExport = namesIn(header);
  const inDatabase = namesIn(contents);
  const [onlyInExport] = notIn(inDatabase, inExport);
  if (onlyInExport !== undefined) throw otherSchema(`The export has ${onlyInExport}, and the database has not.`);
  const [onlyInDatabase] = notIn(inExport, inDatabase);
  if (onlyInDatabase !== undefined) throw otherSchema(`The database has ${onlyInDatabase}, and the export has not.`);
}

function otherSchema(difference: string): StartupError {
  return new StartupError(`${difference} Nothing was imported. Make them alike.`);
}

function checkMigrations({ migrations, service }: ExportHeader, applied: readonly string[]): void {
  const onlyInExport = notIn(applied, migrations);
  const onlyInDatabase = notIn(migrations, applied);
  const differences = [
    ...(onlyInExport.length > 0 ? [`the database lacks ${onlyInExport.join(', ')}`] : []),
    ...(onlyInDatabase.length > 0 ? [`the export lacks ${onlyInDatabase.join(', ')}`] : []),
  ];
  if (differences.length === 0) return;
  throw new StartupError(
    `The export has another schema: ${differences.join('; ')}. Nothing was imported. ` +
      `Import it with the version of the service that wrote it (${service}), and migrate then.`,
  );
}

/** The candidates that are not among these names. */
function notIn(names: readonly string[], candidates: readonly string[]): string[] {
  const known = new Set(names);
  return candidates.filter((candidate) => !known.has(candidate));
}

/** Names and types that must be equal in the export and in the database, as text for a message. */
function namesIn({ tables, sequences }: Pick<ExportHeader, 'sequences' | 'tables'> | DatabaseContents): string[] {
  return [
    ...tables.map(({ name }) => `table ${name}`),
    ...tables.flatMap(({ name, columns }) => columns.map((column) => `column ${name}.${column.name} ${column.type}`)),
    ...sequences.map(({ name }) => `sequence ${name}`),
  ];
}

/** @throws StartupError that names the tables that hold rows */
async function checkEmptiness(run: Run, { schema, tables }: DatabaseContents): Promise<void> {
  const filled: string[] = [];
  for (const { name } of tables) {
    const [[exists] = []] = await run(`SELECT EXISTS (SELECT FROM ${identifier(schema, name)})`);
    if (exists === 't') filled.push(name);
  }
  if (filled.length > 0) {
    throw new StartupError(
      `The database is not empty: it holds rows of ${filled.join(', ')}. Nothing was imported. ` +
        'Take an empty one, or delete what this one holds with --replace.',
    );
  }
}

/** Advice for errors of PostgreSQL, by SQLSTATE (PostgreSQL, appendix A). */
const ADVICE: Readonly<Record<string, string>> = {
  '42501': 'Import as the owner of the schema, who also runs migrate',
  '55P03': 'The tables are in use: stop the service, and end what else uses the database',
};

/** Turns an error of PostgreSQL into one with advice that says nothing was imported. Returns other errors unchanged. */
function withAdvice(error: unknown): unknown {
  const { severity, code, message } = error as { severity?: unknown; code?: string; message: string };
  if (severity === undefined) return error;
  const advice = ADVICE[code ?? ''] ?? `SQLSTATE ${code}; the log of PostgreSQL says more`;
  return new StartupError(`PostgreSQL refuses: ${message}. Nothing was imported. ${advice}.`, { cause: error });
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
