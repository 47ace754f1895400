import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { ApiError } from '#errors';
import { StartupError } from '#runtime';
import { copyRows, EXACT, withSchemaLock } from '#postgres';
import { CHECKSUM, EXPORT_FORMAT, exportHeader } from './export.js';

const COPY_CHARACTERS = 256 * 1024;

/**
 * Lines that are not run: comments, and the transaction of the script, because the import has its own. Also damaged ones: a
 * file may end with `COMMIT`.
 */
const NOT_RUN = /^(--|BEGIN|COMMIT)/;

/** Sets a sequence, which no rollback undoes. So these lines run at last, when the whole file has proved to be right. */
const SETS_SEQUENCE = /^SELECT setval\(/;

/** SQLSTATE of an error that the script itself raises. */
const RAISED = 'P0001';

/**
 * Runs an export, a script of SQL, on a database of the same migrations, in one transaction: if anything fails or the
 * process ends, the database stays unchanged. The transaction locks all tables. Needs the rights of the owner. The
 * script may do whatever the owner may: import only files that you trust.
 *
 * @param product the name of the product, which the export begins with
 * @param source the bytes of the export
 * @returns the number of imported rows
 * @throws StartupError when the export is damaged, of another format or schema, or refused; ApiError UNAVAILABLE; errors of `source`
 */
export async function importDatabase(
  dataSource: DataSource,
  product: string,
  source: AsyncIterable<Buffer>,
): Promise<number> {
  return withSchemaLock(dataSource, async (queryRunner) => {
    const run = queryRunner.manager.transaction(() => runScript(queryRunner, product, source));
    const rows = await run.catch((error: unknown) => {
      throw withAdvice(error);
    });
    // The planner needs statistics of the new rows now: autovacuum is late, and the embedded engine has none.
    await queryRunner.query('ANALYZE').catch(() => undefined);
    return rows;
  });
}

async function runScript(queryRunner: QueryRunner, product: string, source: AsyncIterable<Buffer>): Promise<number> {
  const client = (await queryRunner.connect()) as ClientBase;
  const hash = createHash('sha256');
  let checksum: string | undefined;
  let copy: string | undefined;
  let rows: string[] = [];
  let characters = 0;
  const sequences: string[] = [];
  let count = 0;
  let isBegun = false;
  for await (const line of linesOf(source)) {
    if (!isBegun) refuseUnlessBegin(line, exportHeader(product));
    isBegun = true;
    if (checksum !== undefined) throw damaged('it goes on after its end');
    if (copy === undefined && line.startsWith(CHECKSUM)) {
      checksum = line;
      continue;
    }
    hash.update(`${line}\n`);
    if (copy !== undefined) {
      const isEnd = line === '\\.';
      if (!isEnd) rows.push(line);
      characters += line.length;
      if (isEnd || characters > COPY_CHARACTERS) {
        await copyRows(client, copy, rows);
        count += rows.length;
        rows = [];
        characters = 0;
      }
      if (isEnd) copy = undefined;
    } else if (line.startsWith('COPY ')) {
      copy = line;
    } else if (SETS_SEQUENCE.test(line)) {
      sequences.push(line);
    } else if (!NOT_RUN.test(line)) {
      await queryRunner.query(EXACT + line);
    }
  }
  if (checksum === undefined) throw damaged('it ends too early');
  if (checksum !== CHECKSUM + hash.digest('hex')) throw damaged('its checksum is wrong');
  for (const line of sequences) await queryRunner.query(EXACT + line);
  return count;
}

/** The lines of a file, the last one also without its line end. */
async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  // Joined at the end of a line: a search of all of it for each piece would take a minute for a line of 60 MB.
  let parts: string[] = [];
  for await (const piece of source) {
    const lines = decoder.decode(piece, { stream: true }).split('\n');
    const rest = lines.pop() as string;
    if (lines.length > 0) {
      yield parts.join('') + lines.shift();
      yield* lines;
      parts = [];
    }
    parts.push(rest);
  }
  const last = parts.join('');
  if (last !== '') yield last;
}

/** Refuses a first line that this version does not write. */
function refuseUnlessBegin(line: string, header: string): void {
  // Format 1 had frames of JSON, each with its length.
  const format = line.startsWith(header)
    ? (/^format (\d+), /.exec(line.slice(header.length))?.[1] ?? EXPORT_FORMAT)
    : /^\{"[\w-]+-export":(\d+),/.exec(line)?.[1];
  if (format === undefined) {
    if (line.startsWith('\x1f')) throw refused('The export is compressed. Unpack it, with gunzip.');
    // UTF-16 that is read as UTF-8 has a NUL in every second byte, and perhaps a byte order mark that is no UTF-8.
    if (line.includes('\0') && line.replace(/[\0\ufffd]/g, '').startsWith(header)) {
      throw refused('The export is UTF-16, as > of Windows PowerShell writes it. Use --to <file>.');
    }
    throw damaged('it does not begin as export begins it');
  }
  if (Number(format) === EXPORT_FORMAT) return;
  const writer = /, service ([\w.+-]+)/.exec(line)?.[1] ?? 'before 1.0.0';
  throw refused(
    `The export has format ${format}, and this version reads format ${EXPORT_FORMAT}. ` +
      `Import it with the version of the service that wrote it (${writer}).`,
  );
}

function refused(why: string): StartupError {
  return new StartupError(`${why} Nothing was imported.`);
}

function damaged(what: string): StartupError {
  return new StartupError(`The export is damaged: ${what}. Nothing was imported. Take another copy of it.`);
}

/** Turns an error of PostgreSQL into one with advice that says nothing was imported. Returns other errors unchanged. */
function withAdvice(thrown: unknown): unknown {
  const error = thrown instanceof ApiError ? thrown.cause : thrown;
  const { severity, code, message } = error as { severity?: unknown; code?: string; message: string };
  if (severity === undefined) return thrown;
  const text =
    code === RAISED
      ? `${message} Nothing was imported.`
      : `PostgreSQL refuses: ${message}. Nothing was imported. Import as the owner of the schema who also runs migrate, ` +
        'with the service stopped, and another copy of the export if that does not help.';
  return new StartupError(text, { cause: error });
}
