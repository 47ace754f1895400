import { randomBytes } from 'node:crypto';
import { createWriteStream, openSync, rmSync } from 'node:fs';
import { lstat, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PassThrough, type Transform, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { CommandError } from '../command/command-error.js';

/** The output of a command: a file or standard output. */
export interface OutputFile {
  /**
   * Writes bytes, and waits while the disk or the reader is slow. A failure may surface only in the next call.
   *
   * @throws CommandError when they cannot be written
   */
  write(bytes: Buffer): Promise<void>;
  /**
   * Writes everything to the disk, and gives the file its final name.
   *
   * @throws CommandError when that fails
   */
  complete(): Promise<void>;
  /** Removes what was written, unless it is complete. */
  discard(): Promise<void>;
}

/** The path that means standard output, or standard input. */
export const STANDARD_STREAM = '-';

/** The level that takes the least time. */
const GZIP_LEVEL = 1;

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Creates a file that only its owner may read. The file has a temporary name beside `path` until it is complete and on
 * the disk. If the path ends with .gz, the file is gzipped; `-` is standard output.
 *
 * @param overwrite whether a file of this name is replaced, at the end
 * @throws CommandError when the file exists or cannot be made, or standard output is a terminal
 */
export async function createOutputFile(path: string, overwrite: boolean): Promise<OutputFile> {
  if (path === STANDARD_STREAM) {
    if (process.stdout.isTTY) throw new CommandError('Standard output is a terminal. Name a file, or use a pipe.');
    return new StreamOutput(path, process.stdout, false);
  }
  const existing = await lstat(path).catch(() => undefined);
  if (existing !== undefined && !(overwrite && existing.isFile())) throw alreadyThere(path, existing.isFile());
  const draft = `${path}.${randomBytes(4).toString('hex')}.part`;
  const cancelRemoval = removeOnSignal(draft);
  try {
    // Synchronous: a signal between creating the file and registering its removal would leave the file behind.
    const fd = openSync(draft, 'wx', 0o600);
    return new DraftFile(path, draft, overwrite, createWriteStream(draft, { fd, flush: true }), cancelRemoval);
  } catch (error) {
    cancelRemoval();
    throw cannotWrite(path, error);
  }
}

/** Removes a file when a signal ends the process, until the returned function is called. */
function removeOnSignal(path: string): () => void {
  const onSignal = (signal: NodeJS.Signals): void => {
    rmSync(path, { force: true });
    cancelRemoval();
    process.kill(process.pid, signal);
  };
  const cancelRemoval = (): void => ENDING_SIGNALS.forEach((signal) => process.off(signal, onSignal));
  for (const signal of ENDING_SIGNALS) process.once(signal, onSignal);
  return cancelRemoval;
}

class StreamOutput implements OutputFile {
  private readonly head: Transform;
  private readonly written: Promise<void>;
  private failure: CommandError | undefined;

  /** @param endsStream whether the stream ends with the output */
  constructor(
    protected readonly path: string,
    stream: Writable,
    endsStream: boolean,
  ) {
    this.head = path.endsWith('.gz') ? createGzip({ level: GZIP_LEVEL }) : new PassThrough();
    this.written = pipeline(this.head, stream, { end: endsStream }).catch((error) => {
      this.failure = cannotWrite(path, error);
    });
  }

  async write(bytes: Buffer): Promise<void> {
    await Promise.race([this.written, new Promise<void>((taken) => this.head.write(bytes, () => taken()))]);
    if (this.failure !== undefined) throw this.failure;
  }

  async complete(): Promise<void> {
    this.head.end();
    await this.written;
    if (this.failure !== undefined) throw this.failure;
  }

  async discard(): Promise<void> {
    this.head.destroy();
    await this.written;
  }
}

class DraftFile extends StreamOutput {
  private isDraft = true;

  /** @param cancelRemoval cancels the removal of the draft by signals */
  constructor(
    path: string,
    private readonly draft: string,
    private readonly overwrite: boolean,
    stream: Writable,
    private readonly cancelRemoval: () => void,
  ) {
    super(path, stream, true);
  }

  override async complete(): Promise<void> {
    await super.complete();
    try {
      // Fails if another process has created a file of this name meanwhile.
      if (!this.overwrite) await (await open(this.path, 'wx', 0o600)).close();
      await rename(this.draft, this.path);
      this.isDraft = false;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyThere(this.path, true);
      throw cannotWrite(this.path, error);
    }
    this.cancelRemoval();
    await syncDirectory(dirname(this.path));
  }

  override async discard(): Promise<void> {
    if (!this.isDraft) return;
    this.isDraft = false;
    await super.discard();
    this.cancelRemoval();
    await unlink(this.draft).catch(() => undefined);
  }
}

/** Flushes a directory's entries to the disk, where the file system supports it. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r').catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}

function alreadyThere(path: string, isFile: boolean): CommandError {
  const advice = isFile ? 'Name another one, or replace it with --overwrite' : 'Name another one, or use - and a pipe';
  return new CommandError(`'${path}' exists${isFile ? '' : ', and is no file'}. ${advice}.`);
}

function cannotWrite(path: string, error: unknown): CommandError {
  const { code, message } = error as NodeJS.ErrnoException;
  const known: Record<string, string> = {
    ENOSPC: 'the disk is full',
    EDQUOT: 'the disk quota is used up',
    EPIPE: 'nobody reads it',
    ENOENT: 'its directory does not exist',
    ENOTDIR: 'it is below a file',
    EACCES: 'this user may not write there',
    EROFS: 'the file system is read-only',
  };
  const where = path === STANDARD_STREAM ? 'Standard output' : `'${path}'`;
  return new CommandError(`${where} cannot be written: ${known[code ?? ''] ?? message}.`);
}
