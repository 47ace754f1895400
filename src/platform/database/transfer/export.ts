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
 * Largest growth from one FETCH to the next, as a factor of the number of rows; the first one fetches one row. A FETCH never
 * returns more rows than fill a frame if all of them were as long as the longest row so far.
 */
const GROWTH = 4;

/** Attempts to close a cursor; each waits at most ACQUIRE_TIMEOUT_MS for the connection. */
const CLOSE_ATTEMPTS = 100;

/** Settings for texts of values that every PostgreSQL server reads alike; pg_dump uses the same. */
const TEXT_SETTINGS = `
  SET LOCAL datestyle = 'ISO'; SET LOCAL intervalstyle = 'postgres'; SET LOCAL timezone = 'UTC';
  SET LOCAL extra_float_digits = 3; SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = off;`;

/** PostgreSQL 17 and later have `transaction_timeout`. */
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
  const { sharesConnection } = options;
  const queryRunner = dataSource.createQueryRunner('master');
  const prefix = `petstore_export_${randomBytes(4).toString('hex')}_`;
  let cursors: string[] = [];
  try {
    const run = await runOn(queryRunner);
    await run('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    let header: ExportHeader;
    try {
      // With time limits, a reader that pauses would end the transaction.
      await run(`${NO_LIMITS}; SET LOCAL synchronize_seqscans = off; ${TEXT_SETTINGS}`);
      const contents = await contentsOf(run);
      header = await headerOf(run, contents, options.service);
      cursors = contents.tables.map((_, index) => `${prefix}${index}`);
      for (const [index, table] of contents.tables.entries()) {
        const hold = sharesConnection ? 'WITH HOLD' : '';
        await run(`DECLARE ${cursors[index]} NO SCROLL CURSOR ${hold} FOR ${selectAll(contents, table)}`);
      }
      if (sharesConnection) await run('COMMIT');
    } catch (error) {
      await run('ROLLBACK').catch(() => undefined);
      throw error;
    }
    if (!sharesConnection) return await writeFrames(header, cursors, run, options);
    await queryRunner.release();
    return await writeFrames(header, cursors, runAnew(dataSource), options);
  } finally {
    await end(dataSource, queryRunner, sharesConnection ? cursors : []);
  }
}

/** Ends the transaction with its cursors, or closes the cursors that outlive their transaction. */
async function end(dataSource: DataSource, queryRunner: QueryRunner, heldCursors: string[]): Promise<void> {
  if (!queryRunner.isReleased) {
    // The pool would close a connection with an open transaction.
    await (await runOn(queryRunner))('ROLLBACK').catch(() => undefined);
    await queryRunner.release();
  }
  const run = runAnew(dataSource);
  for (const cursor of heldCursors) {
    // Repeats CLOSE while other statements occupy the connection: an open cursor keeps a copy of its table.
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
      return await (
        await runOn(queryRunner)
      )(text);
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

async function writeFrames(
  { tables, ...header }: ExportHeader,
  cursors: readonly string[],
  run: Run,
  { maxRows, write, onProgress }: ExportOptions,
): Promise<TransferSummary> {
  const total = tables.reduce((sum, { rows }) => sum + rows, 0);
  const frames = new FrameWriter();
  await write(frames.header({ ...header, tables }));
  let done = 0;
  for (const [index, { name, rows: count }] of tables.entries()) {
    const end = done + count;
    let limit = 1;
    let longest = 1;
    while (done < end) {
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
