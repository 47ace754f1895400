import { createHash } from 'node:crypto';
import { StartupError } from '../../errors/startup-error.js';

/*
 * An export is a sequence of frames. A frame is a line of JSON, followed by as many bytes as the line states:
 *
 *   {"petstore-export":1,"bytes":1234,"sha256":"…"}            the first frame: its bytes are the header, as JSON
 *   {"table":"visit","rows":10000,"bytes":567890,"sha256":"…"}   rows of a table, in the text format of COPY
 *
 * `sha256` covers the digest of the previous frame (none for the first one), the line before the member `sha256`, and the
 * bytes. So no frame can be changed, left out, repeated or moved unnoticed. The header states the number of rows of each
 * table, so a missing end is noticed.
 */

/** The version of the format that this service writes and reads. */
export const FORMAT_VERSION = 1;

/** Longest line of a frame, largest header and largest frame of rows, in bytes. A row must fit into one frame. */
const MAX_LINE_BYTES = 4_096;
const MAX_HEADER_BYTES = 64 * 1024 * 1024;
const MAX_ROWS_BYTES = 256 * 1024 * 1024;

/** A column of an export; `type` is the result of PostgreSQL's `format_type`. */
export interface ColumnDescription {
  readonly name: string;
  readonly type: string;
}

/** The header of an export. Tables are in the order of the frames. All names belong to the database's current schema. */
export interface ExportHeader {
  /** Time in RFC 3339, UTC. */
  readonly createdAt: string;
  /** Versions of the service and of the database that made the export. */
  readonly service: string;
  readonly database: string;
  /** The applied migrations, in the order of their application: the version of the schema. */
  readonly migrations: readonly string[];
  readonly tables: readonly {
    readonly name: string;
    readonly columns: readonly ColumnDescription[];
    readonly rows: number;
  }[];
  /** `lastValue` is an int64 as text; `isCalled` is false if `lastValue` itself is the next value. */
  readonly sequences: readonly { readonly name: string; readonly lastValue: string; readonly isCalled: boolean }[];
}

/** Some rows of a table in the text format of COPY, each with its line end. */
export interface RowsFrame {
  readonly table: string;
  readonly rows: number;
  readonly bytes: Buffer;
}

/** Makes the frames of one export. Must be called in the order of the frames. */
export class FrameWriter {
  private readonly chain = new DigestChain();

  header(header: ExportHeader): Buffer {
    return this.frame({ 'petstore-export': FORMAT_VERSION }, Buffer.from(`${JSON.stringify(header)}\n`));
  }

  /** @throws StartupError when the rows are larger than the limit of imports */
  rows({ table, rows, bytes }: RowsFrame): Buffer {
    if (bytes.length > MAX_ROWS_BYTES) {
      throw new StartupError(
        `Table ${table} has rows of more than ${MAX_ROWS_BYTES / 1024 / 1024} MiB, which an export cannot hold. Use pg_dump.`,
      );
    }
    return this.frame({ table, rows }, bytes);
  }

  private frame(fields: object, bytes: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.chain.line({ ...fields, bytes: bytes.length }, bytes)}\n`), bytes]);
  }
}

/** Reads the frames of one export, and checks each before it returns it. */
export class FrameReader {
  private readonly chain = new DigestChain();

  constructor(private readonly input: ByteReader) {}

  /** @throws StartupError for a file that is no export, is damaged, or has a format that this version does not know */
  async header(): Promise<ExportHeader> {
    const line = await this.input.line(MAX_LINE_BYTES);
    const fields = line === undefined ? undefined : fieldsOf(line);
    const version = fields?.['petstore-export'];
    if (fields === undefined || typeof version !== 'number') {
      throw new StartupError(
        'This is no export of this service. Nothing was imported. Name a file that `petstore export` wrote.',
      );
    }
    if (version !== FORMAT_VERSION) {
      throw new StartupError(
        `The export has format ${version}, and this version reads format ${FORMAT_VERSION}. Nothing was imported. ` +
          'Import it with the version that wrote it.',
      );
    }
    const bytes = await this.bytes(fields, MAX_HEADER_BYTES);
    this.check(line as string, { 'petstore-export': version, bytes: bytes.length }, bytes);
    return JSON.parse(bytes.toString()) as ExportHeader;
  }

  /** @throws StartupError when the frame is damaged or missing */
  async rows(): Promise<RowsFrame> {
    const line = await this.input.line(MAX_LINE_BYTES);
    if (line === undefined) throw damaged('it ends too early');
    const fields = fieldsOf(line);
    const { table, rows } = fields ?? {};
    if (fields === undefined || typeof table !== 'string' || typeof rows !== 'number') {
      throw damaged('a checksum is wrong');
    }
    const bytes = await this.bytes(fields, MAX_ROWS_BYTES);
    this.check(line, { table, rows, bytes: bytes.length }, bytes);
    return { table, rows, bytes };
  }

  /** @throws StartupError when anything follows */
  async end(): Promise<void> {
    if (!(await this.input.isAtEnd())) throw damaged('it goes on behind its end');
  }

  private async bytes({ bytes: length }: Record<string, unknown>, maximum: number): Promise<Buffer> {
    if (!Number.isInteger(length) || (length as number) < 0 || (length as number) > maximum) {
      throw damaged('a checksum is wrong');
    }
    return this.input.bytes(length as number);
  }

  /** Compares the line, character by character, with the line that a writer makes for these fields and bytes. */
  private check(line: string, fields: object, bytes: Buffer): void {
    if (this.chain.line(fields, bytes) !== line) throw damaged('a checksum is wrong');
  }
}

/** The digests of the frames of one export. Each covers the previous ones. */
class DigestChain {
  private last = '';

  /** The line of the next frame, without its line end. */
  line(fields: object, bytes: Buffer): string {
    const start = JSON.stringify(fields).slice(0, -1);
    this.last = createHash('sha256').update(this.last).update(start).update(bytes).digest('hex');
    return `${start},"sha256":"${this.last}"}`;
  }
}

/** The error for an export that was changed or is incomplete. */
export function damaged(what: string): StartupError {
  return new StartupError(`The export is damaged: ${what}. Nothing was imported. Take another copy of it.`);
}

function fieldsOf(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

const LINE_END = 0x0a;

/** Reads lines and bytes from a stream. Buffers at most one chunk more than was requested. */
export class ByteReader {
  private readonly source: AsyncIterator<Buffer>;
  private pieces: Buffer[] = [];
  private length = 0;

  constructor(source: AsyncIterable<Buffer>) {
    this.source = source[Symbol.asyncIterator]();
  }

  /** The next line without its end; undefined if there is no line end within `maximum` bytes. */
  async line(maximum: number): Promise<string | undefined> {
    for (;;) {
      const [first = Buffer.alloc(0)] = (this.pieces = [Buffer.concat(this.pieces)]);
      const end = first.subarray(0, maximum).indexOf(LINE_END);
      if (end >= 0) return this.take(end + 1).toString('utf8', 0, end);
      if (first.length >= maximum || !(await this.pull())) return undefined;
    }
  }

  /** @throws StartupError when fewer bytes are left */
  async bytes(count: number): Promise<Buffer> {
    while (this.length < count) {
      if (!(await this.pull())) throw damaged('it ends too early');
    }
    return this.take(count);
  }

  /** Returns the next bytes without consuming them; fewer if fewer are left. */
  async peek(count: number): Promise<Buffer> {
    while (this.length < count && (await this.pull()));
    this.pieces = [Buffer.concat(this.pieces)];
    return (this.pieces[0] as Buffer).subarray(0, count);
  }

  async isAtEnd(): Promise<boolean> {
    return (await this.peek(1)).length === 0;
  }

  /** The remaining bytes. */
  async *rest(): AsyncGenerator<Buffer> {
    do {
      yield this.take(this.length);
    } while (await this.pull());
  }

  private take(count: number): Buffer {
    const all = this.pieces.length === 1 ? (this.pieces[0] as Buffer) : Buffer.concat(this.pieces);
    this.pieces = [all.subarray(count)];
    this.length -= count;
    return all.subarray(0, count);
  }

  private async pull(): Promise<boolean> {
    const next = await this.source.next();
    if (next.done === true) return false;
    this.pieces.push(next.value);
    this.length += next.value.length;
    return true;
  }
}
