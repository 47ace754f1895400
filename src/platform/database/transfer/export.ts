import { randomBytes } from 'node:crypto';
import type { DataSource, QueryRunner } from 'typeorm';
import { StartupError } from '../../errors/startup-error.js';
import { isConnectionFailure } from '../connections/connection-errors.js';
import { copyLine } from './copy-text.js';
import {
  columnList,
  contentsOf,
  type DatabaseContents,
  identifier,
  type Run,
  type TableContents,
} from './database-contents.js';
import { type ExportHeader, FrameWriter } from '../export-format/export-format.js';
import { runOn } from './session.js';

/** Approximate size of a frame in bytes; a frame with a single row may be larger. */
const FRAME_BYTES = 512 * 1024;

/**
 * The first FETCH of a table returns one row; each further one at most this many times as many. None asks for more rows than
 * fill a frame if all of them are as long as the longest row so far.
 */
const GROWTH = 4;

/** Attempts to close a cursor; each waits at most ACQUIRE_TIMEOUT_MS for the connection. */
const CLOSE_ATTEMPTS = 100;

/**
 * Settings for texts of values that every PostgreSQL server reads alike. With `row_security` off, PostgreSQL refuses to
 * read a table of which it would hide rows.
 */
const TEXT_SETTINGS = `
  SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'postgres'; SET LOCAL timezone = 'UTC';
  SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = off;`;

/** Switches off the time limits that this server has; only PostgreSQL 17 and later have `transaction_timeout`. */
const NO_LIMITS = `
  SELECT set_config(name, '0', true) FROM pg_settings
  WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')`;

export interface ExportOptions {
  /** The version of the service, which the header states. */
  readonly service: string;
  /** Largest number of rows that one statement fetches and a frame holds. */
  readonly maxRows: number;
  /**
   * True: the connection is free between two statements, because requests need the embedded engine's only connection. The
   * database first copies the rows of the snapshot; requests wait for that. False: a transaction on a connection of its own
   * keeps the snapshot.
   */
  readonly sharesConnection: boolean;
  /** Takes the bytes of the export, in order. */
  readonly write: (bytes: Buffer) => Promise<void>;
  /** Called after each frame with the numbers of rows written and to write, and awaited. */
  readonly onProgress?: (done: number, total: number) => void | Promise<void>;
}

/** The numbers of rows that an export or import has transferred. */
export interface TransferSummary {
  readonly rows: number;
  readonly tables: readonly { readonly name: string; readonly rows: number }[];
}

/**
 * Writes all rows of all tables, and the states of the sequences, as of one moment. Concurrent changes are possible and are
 * not included. Needs the rights of the service: to read the tables and use the sequences. Memory is bounded by a few frames
 * of FRAME_BYTES, or by a few of the largest rows.
 *
 * @throws StartupError when there is no schema, or a row is too large; ApiError UNAVAILABLE; any error of PostgreSQL or `write`
 */
export async function exportDatabase(dataSource: DataSource, options: ExportOptions): Promise<TransferSummary> {
  const queryRunner = dataSource.createQueryRunner('master');
  /** Cursors that outlive their transaction. */
  let heldCursors: readonly string[] = [];
  try {
    const run = await runOn(queryRunner);
    const snapshot = await takeSnapshot(run, options);
    if (!options.sharesConnection) return await writeFrames(snapshot, run, options);
    heldCursors = snapshot.cursors;
    await run('COMMIT');
    await queryRunner.release();
    return await writeFrames(snapshot, runAnew(dataSource), options);
  } finally {
    if (!queryRunner.isReleased) await rollBack(queryRunner);
    await closeCursors(runAnew(dataSource), heldCursors);
  }
}

/** The contents of the database at one moment. */
interface Snapshot {
  readonly header: ExportHeader;
  /** For each table of the header, the name of the cursor that returns its rows. */
  readonly cursors: readonly string[];
}

/** Begins a transaction, counts the rows, and declares the cursors that return them. */
async function takeSnapshot(run: Run, { sharesConnection, service }: ExportOptions): Promise<Snapshot> {
  await run('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  // With time limits, a reader that pauses would end the transaction.
  await run(`${NO_LIMITS}; SET LOCAL synchronize_seqscans = off; ${TEXT_SETTINGS}`);
  const contents = await contentsOf(run);
  const header = await headerOf(run, contents, service);
  const prefix = `petstore_export_${randomBytes(4).toString('hex')}_`;
  const cursors = contents.tables.map((_, index) => `${prefix}${index}`);
  const hold = sharesConnection ? 'WITH HOLD' : '';
  for (const [index, table] of contents.tables.entries()) {
    await run(`DECLARE ${cursors[index]} NO SCROLL CURSOR ${hold} FOR ${selectAll(contents, table)}`);
  }
  return { header, cursors };
}

/** Ends the transaction with its cursors, and releases the connection. */
async function rollBack(queryRunner: QueryRunner): Promise<void> {
  // The pool would close a connection with an open transaction.
  await (await runOn(queryRunner))('ROLLBACK').catch(() => undefined);
  await queryRunner.release();
}

/**
 * Closes cursors that outlive their transaction: each keeps a copy of its table. Repeats a CLOSE while other statements
 * occupy the connection.
 */
async function closeCursors(run: Run, cursors: readonly string[]): Promise<void> {
  for (const cursor of cursors) {
    for (let attempt = 0; attempt < CLOSE_ATTEMPTS; attempt++) {
      const failure = await run(`CLOSE ${cursor}`).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (!isConnectionFailure(failure)) break;
    }
  }
}

/** Runs each statement on the connection when it is free, and releases the connection afterwards. */
function runAnew(dataSource: DataSource): Run {
  return async (text) => {
    const queryRunner = dataSource.createQueryRunner('master');
    try {
      const run = await runOn(queryRunner);
      return await run(text);
    } finally {
      await queryRunner.release();
    }
  };
}

async function headerOf(run: Run, contents: DatabaseContents, service: string): Promise<ExportHeader> {
  const { schema, migrations, tables, sequences } = contents;
  if (migrations.length === 0) {
    throw new StartupError(
      'The database has no schema, so there is nothing to export. Check DATABASE_URL and DATA_DIR.',
    );
  }
  const counted: ExportHeader['tables'][number][] = [];
  for (const { name, columns, isPartitioned } of tables) {
    const [[count] = []] = await run(`SELECT count(*) FROM ${from(schema, name, isPartitioned)}`);
    counted.push({ name, columns, rows: Number(count) });
  }
  const states: ExportHeader['sequences'][number][] = [];
  // Sequences are not part of a snapshot. They are read after it was taken, so none is behind the rows.
  for (const { name, state } of sequences) {
    const [[lastValue, isCalled] = []] = await run(state);
    states.push({ name, lastValue: lastValue as string, isCalled: isCalled === 't' });
  }
  const [[version] = []] = await run('SHOW server_version');
  const createdAt = new Date().toISOString();
  return { createdAt, service, database: `PostgreSQL ${version}`, migrations, tables: counted, sequences: states };
}

/** Writes the header, and the rows in frames. */
async function writeFrames(
  { header, cursors }: Snapshot,
  run: Run,
  { maxRows, write, onProgress }: ExportOptions,
): Promise<TransferSummary> {
  const { tables } = header;
  const total = tables.reduce((sum, { rows }) => sum + rows, 0);
  const frames = new FrameWriter();
  await write(frames.header(header));
  let done = 0;
  for (const [index, { name, rows: count }] of tables.entries()) {
    const end = done + count;
    let limit = 1;
    let longest = 1;
    while (done < end) {
      // FETCH makes the texts, and may run in a transaction of its own.
      const rows = await run(`${TEXT_SETTINGS} FETCH ${limit} FROM ${cursors[index]}`);
      if (rows.length === 0) throw new Error(`Table ${name} has fewer rows than were counted.`);
      const lines = rows.map(copyLine);
      for (const line of lines) longest = Math.max(longest, line.length);
      limit = Math.max(1, Math.min(maxRows, limit * GROWTH, Math.floor(FRAME_BYTES / longest)));
      await write(frames.rows({ table: name, rows: rows.length, bytes: Buffer.from(lines.join('')) }));
      done += rows.length;
      await onProgress?.(done, total);
    }
  }
  return { rows: total, tables: tables.map(({ name, rows }) => ({ name, rows })) };
}

function selectAll({ schema }: DatabaseContents, table: TableContents): string {
  return `SELECT ${columnList(table)} FROM ${from(schema, table.name, table.isPartitioned)}`;
}

/** The table in SQL. ONLY excludes tables that inherit from it, which are listed themselves. */
function from(schema: string, table: string, isPartitioned: boolean): string {
  return `${isPartitioned ? '' : 'ONLY '}${identifier(schema, table)}`;
}
