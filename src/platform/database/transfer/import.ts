import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { ApiError } from '../../errors/api-error.js';
import { StartupError } from '../../errors/startup-error.js';
import { withSchemaLock } from '../schema/schema-lock.js';
import { copyRows } from './copy-rows.js';
import { CHECKSUM, EMPTINESS_CHECK, EXPORT_HEADER, tableNames, type TransferSummary } from './export.js';

/** Characters of rows that one COPY sends. */
const COPY_CHARACTERS = 256 * 1024;

/** Lines that are not run: comments, and the transaction of the script, because the import has its own. */
const NOT_RUN = /^(--|BEGIN;$|COMMIT;$)/;

/**
 * Runs an export, a script of SQL, on a database of the same migrations, in one transaction: if anything fails or the
 * process ends, the database stays unchanged. The transaction locks all tables. Needs the rights of the owner. The
 * script may do whatever the owner may: import only files that you trust.
 *
 * @param source the bytes of the export
 * @param replace true: all existing rows are deleted in the same transaction; false: a database with any row is refused
 * @throws StartupError when the export is damaged or of another schema, the database holds rows, or PostgreSQL refuses;
 *   ApiError UNAVAILABLE; any error of `source`
 */
export async function importDatabase(
  dataSource: DataSource,
  source: AsyncIterable<Buffer>,
  replace: boolean,
): Promise<TransferSummary> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    let summary: TransferSummary;
    await queryRunner.startTransaction();
    try {
      summary = await runScript(queryRunner, source, replace);
      await queryRunner.commitTransaction();
    } catch (error) {
      await queryRunner.rollbackTransaction().catch(() => undefined);
      throw withAdvice(error);
    }
    // The planner needs statistics of the new rows now: autovacuum is late, and the embedded engine has none.
    await queryRunner.query('ANALYZE').catch(() => undefined);
    return summary;
  });
}

/** The lines of a file, the last one also without its line end. */
async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let rest = '';
  let isFirst = true;
  for await (const piece of source) {
    const text = decoder.decode(piece, { stream: true });
    if (isFirst && !text.startsWith(EXPORT_HEADER)) break;
    isFirst = false;
    if (!text.includes('\n')) {
      rest += text;
      continue;
    }
    const lines = (rest + text).split('\n');
    rest = lines.pop() as string;
    yield* lines;
  }
  if (isFirst) {
    throw new StartupError('This is no export of this service. Nothing was imported. Name a file that export wrote.');
  }
  if (rest !== '') yield rest;
}

/** A statement of an export, or a COPY with some of its rows. */
interface Step {
  readonly sql: string;
  readonly rows?: readonly string[];
}

/** @throws StartupError after the last step when the export is damaged */
async function* stepsOf(source: AsyncIterable<Buffer>): AsyncGenerator<Step> {
  const hash = createHash('sha256');
  let checksum: string | undefined;
  let copy: string | undefined;
  let rows: string[] = [];
  let characters = 0;
  for await (const line of linesOf(source)) {
    if (checksum !== undefined) throw damaged('it goes on after its end');
    if (copy === undefined && line.startsWith(CHECKSUM)) {
      checksum = line;
      continue;
    }
    hash.update(`${line}\n`);
    if (copy === undefined) {
      if (line.startsWith('COPY ')) copy = line;
      else yield { sql: line };
      continue;
    }
    const isEnd = line === '\\.';
    if (!isEnd) {
      rows.push(line);
      characters += line.length;
    }
    if (rows.length > 0 && (isEnd || characters > COPY_CHARACTERS)) {
      yield { sql: copy, rows };
      rows = [];
      characters = 0;
    }
    if (isEnd) copy = undefined;
  }
  if (checksum === undefined) throw damaged('it ends too early');
  if (checksum !== CHECKSUM + hash.digest('hex')) throw damaged('its checksum is wrong');
}

/** Runs the steps of an export in the transaction of the query runner. */
async function runScript(
  queryRunner: QueryRunner,
  source: AsyncIterable<Buffer>,
  replace: boolean,
): Promise<TransferSummary> {
  const client = (await queryRunner.connect()) as ClientBase;
  const counts = new Map<string, number>();
  for await (const { sql, rows } of stepsOf(source)) {
    if (rows !== undefined) {
      await copyRows(client, sql, Buffer.from(`${rows.join('\n')}\n`));
      const name = /^COPY ((?:"(?:[^"]|"")*"|[^" (])+)/.exec(sql)?.[1] ?? sql;
      counts.set(name, (counts.get(name) ?? 0) + rows.length);
    } else if (replace && sql.startsWith(EMPTINESS_CHECK)) {
      await queryRunner.query(`TRUNCATE ${(await tableNames(queryRunner)).join(', ')}`);
    } else if (!NOT_RUN.test(sql)) {
      await queryRunner.query(sql);
    }
  }
  const tables = [...counts].map(([name, rows]) => ({ name, rows }));
  return { rows: tables.reduce((sum, { rows }) => sum + rows, 0), tables };
}

function damaged(what: string): StartupError {
  return new StartupError(`The export is damaged: ${what}. Nothing was imported. Take another copy of it.`);
}

/** SQLSTATE of an error that the script itself raises. */
const RAISED = 'P0001';

/** Advice for errors of PostgreSQL, by SQLSTATE (PostgreSQL, appendix A). */
const ADVICE: Readonly<Record<string, string>> = {
  '42501': 'Import as the owner of the schema, who also runs migrate',
  '55P03': 'The tables are in use: stop the service, and end what else uses the database',
};

/** Turns an error of PostgreSQL into one with advice that says nothing was imported. Returns other errors unchanged. */
function withAdvice(thrown: unknown): unknown {
  const error = thrown instanceof ApiError ? thrown.cause : thrown;
  const { severity, code = '', message } = error as { severity?: unknown; code?: string; message: string };
  if (severity === undefined) return thrown;
  if (code === RAISED) return new StartupError(`${message} Nothing was imported.`, { cause: error });
  const advice = ADVICE[code] ?? `The export may be damaged; the log of PostgreSQL says more (SQLSTATE ${code})`;
  return new StartupError(`PostgreSQL refuses: ${message}. Nothing was imported. ${advice}.`, { cause: error });
}
