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
import { asking, clientOf, runOn } from './session.js';

export interface ImportOptions {
  /** Delete what the database holds, in the same transaction. Otherwise a database that holds any row is refused. */
  readonly replace: boolean;
  /** Called after each frame with the numbers of rows read and to read, and awaited. */
  readonly onProgress?: (done: number, total: number) => void | Promise<void>;
}

/**
 * Puts all rows and states of sequences of an export into a database of the same schema. All of it is one transaction, so
 * that whatever goes wrong, and whenever the process ends, the database stays as it was. Nobody else can use the tables
 * meanwhile. Memory is bounded by two frames.
 *
 * Triggers of the schema do not fire: what they did is in the export. Foreign keys are checked at the end, so rows may refer to
 * later ones. Both take the rights of the owner.
 *
 * @param source the bytes of the export, gzipped or not
 * @throws StartupError when the export is damaged or of another schema, the database holds rows, or its tables are in use;
 * ApiError UNAVAILABLE; any error of PostgreSQL or `source`
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
      await load(queryRunner, target.contents, header, frames, options);
      await target.complete(header);
      await run('COMMIT');
    } catch (error) {
      await run('ROLLBACK').catch(() => undefined);
      throw explained(error);
    }
    // The planner knows nothing of the new rows yet.
    await run('ANALYZE').catch(() => undefined);
    const tables = header.tables.map(({ name, rows }) => ({ name, rows }));
    return { rows: tables.reduce((sum, { rows }) => sum + rows, 0), tables };
  });
}

async function load(
  queryRunner: QueryRunner,
  { schema, tables }: DatabaseContents,
  header: ExportHeader,
  frames: FrameReader,
  { onProgress }: ImportOptions,
): Promise<void> {
  const client = await clientOf(queryRunner);
  const total = header.tables.reduce((sum, { rows }) => sum + rows, 0);
  let done = 0;
  // The next frame is read and checked while PostgreSQL takes this one.
  let stored = Promise.resolve();
  for (const { name, rows: count, columns } of header.tables) {
    const isPartitioned = tables.some((table) => table.name === name && table.isPartitioned);
    const statement = copyStatement(schema, { name, isPartitioned, columns });
    for (let left = count; left > 0;) {
      const { table, rows, bytes } = await frames.rows();
      if (table !== name || rows > left || rows < 1) throw damaged('its rows are not those of its header');
      await stored;
      stored = asking(copyRows(client, statement, bytes));
      // The next `await` may come much later, and reports it.
      stored.catch(() => undefined);
      left -= rows;
      done += rows;
      await onProgress?.(done, total);
    }
  }
  await stored;
  await frames.end();
}

/** With the columns in the order of the export. The rows of a truncated table may be frozen at once, which spares a later vacuum; those of a partition may not. */
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
    /** Statements that undo what was done to the schema. */
    private readonly restore: readonly string[],
  ) {}

  /** Checks that the database can take the export, locks and empties its tables, and takes triggers and foreign keys away. */
  static async prepare(run: Run, header: ExportHeader, replace: boolean): Promise<Target> {
    const contents = await contentsOf(run);
    checkSchema(header, contents);
    const names = contents.tables.map(({ name }) => identifier(contents.schema, name));
    if (names.length > 0) await run(`LOCK TABLE ${names.join(', ')} IN ACCESS EXCLUSIVE MODE`);
    if (!replace) await checkEmptiness(run, contents);
    const restore: string[] = [];
    for (const query of [TRIGGERS, FOREIGN_KEYS]) {
      for (const [remove, put] of await run(query)) {
        await run(remove as string);
        restore.unshift(put as string);
      }
    }
    if (names.length > 0) await run(`TRUNCATE ${names.join(', ')}`);
    return new Target(run, contents, restore);
  }

  /** Puts sequences, foreign keys and triggers in place. */
  async complete({ sequences }: ExportHeader): Promise<void> {
    const { run, contents, restore } = this;
    await run('SET CONSTRAINTS ALL IMMEDIATE');
    for (const { name, lastValue, isCalled } of sequences) {
      const sequence = identifier(contents.schema, name);
      // RESTART makes a new file for the sequence, so that `setval`, which belongs to no transaction, is undone with it.
      await run(`ALTER SEQUENCE ${sequence} RESTART`);
      await run(`SELECT setval(${literal(sequence)}, ${literal(lastValue)}, ${literal(String(isCalled))})`);
    }
    for (const statement of restore) await run(statement);
  }
}

/** @throws StartupError when the export has other migrations, tables, columns or sequences than the database */
function checkSchema(header: ExportHeader, contents: DatabaseContents): void {
  const lacks = header.migrations.filter((name) => !contents.migrations.includes(name));
  const more = contents.migrations.filter((name) => !header.migrations.includes(name));
  if (lacks.length > 0 || more.length > 0) {
    const differences = [
      ...(lacks.length > 0 ? [`the database lacks ${lacks.join(', ')}`] : []),
      ...(more.length > 0 ? [`the export lacks ${more.join(', ')}`] : []),
    ];
    throw new StartupError(
      `The export has another schema: ${differences.join('; ')}. Nothing was imported. ` +
        `Import it with the version of the service that wrote it (${header.service}), and migrate then.`,
    );
  }
  const [exported, present] = [new Set(namesIn(header)), new Set(namesIn(contents))];
  for (const [side, names, other, others] of [
    ['export', exported, 'database', present],
    ['database', present, 'export', exported],
  ] as const) {
    const name = [...names].find((candidate) => !others.has(candidate));
    if (name === undefined) continue;
    throw new StartupError(`The ${side} has ${name}, and the ${other} has not. Nothing was imported. Make them alike.`);
  }
}

/** Everything that must be the same on both sides, each in words. */
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

/** What else to do about errors of PostgreSQL, by SQLSTATE (PostgreSQL, appendix A). */
const ADVICE: Readonly<Record<string, string>> = {
  '42501': 'Import as the owner of the schema, who also runs migrate',
  '55P03': 'The tables are in use: stop the service, and end what else uses the database',
};

/** An error of PostgreSQL as one that says what is wrong, and that nothing was imported. Other errors are not changed. */
function explained(error: unknown): unknown {
  const { severity, code, message } = error as { severity?: unknown; code?: string; message: string };
  if (severity === undefined) return error;
  const advice = ADVICE[code ?? ''] ?? `SQLSTATE ${code}; the log of PostgreSQL says more`;
  return new StartupError(`PostgreSQL refuses: ${message}. Nothing was imported. ${advice}.`, { cause: error });
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
