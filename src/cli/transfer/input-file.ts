import { open } from 'node:fs/promises';
import { CommandError } from '../command/command-error.js';
import { STANDARD_STREAM } from './output-file.js';

/** Bytes that are read from a file at a time. */
const READ_BYTES = 256 * 1024;

/**
 * Opens a file to read; `-` is standard input.
 *
 * @throws CommandError when it cannot be opened, or standard input is a terminal
 */
export async function openInputFile(path: string): Promise<AsyncIterable<Buffer>> {
  if (path === STANDARD_STREAM) {
    if (process.stdin.isTTY) throw new CommandError('Standard input is a terminal. Name a file, or use a pipe.');
    return process.stdin as AsyncIterable<Buffer>;
  }
  try {
    const file = await open(path);
    if ((await file.stat()).isDirectory()) throw new CommandError(`'${path}' is a directory. Name a file.`);
    return file.createReadStream({ highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = { ENOENT: 'it does not exist', EACCES: 'this user may not read it' }[code ?? ''] ?? message;
    throw new CommandError(`'${path}' cannot be read: ${reason}.`);
  }
}
