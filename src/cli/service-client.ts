import type { Socket } from 'node:net';
import { connectToOwner } from '../platform/database/embedded/directory-lock.js';
import { CommandError } from './options.js';

/** What the service tells at the end of a command. */
export interface ServiceEnd {
  readonly exitCode: number;
  /** Text for standard error. */
  readonly messages: string;
}

/**
 * Lets the service that runs on DATA_DIR run a command: the embedded database belongs to one process. The command is a
 * line of JSON. The service answers a line end, the output of the command, a NUL byte, and a `ServiceEnd` as JSON.
 *
 * @param write takes the output, and is awaited
 * @returns undefined when no service runs there
 * @throws CommandError when the service ends before the command; StartupError when it belongs to another user; any error of
 *   `write`
 */
export async function runInService(
  dataDir: string,
  words: readonly string[],
  write: (bytes: Buffer) => void | Promise<void>,
): Promise<ServiceEnd | undefined> {
  const socket = await connectToOwner(dataDir);
  if (socket === undefined) return undefined;
  socket.on('error', () => undefined).write(`${JSON.stringify(words)}\n`);
  let isServed = false;
  let end: Buffer | undefined;
  try {
    for await (const chunk of chunksOf(socket)) {
      // The first byte is the line end.
      const bytes = isServed ? chunk : chunk.subarray(1);
      isServed = true;
      const endAt = end === undefined ? bytes.indexOf(0) : -1;
      if (end !== undefined) end = Buffer.concat([end, bytes]);
      else if (endAt >= 0) end = bytes.subarray(endAt + 1);
      if (endAt !== 0 && (end === undefined || endAt > 0)) await write(endAt > 0 ? bytes.subarray(0, endAt) : bytes);
    }
  } finally {
    socket.destroy();
  }
  // A process that holds the directory and serves no commands, such as a start or another command.
  if (!isServed) return undefined;
  if (end === undefined) throw new CommandError('The service ended before the command.');
  return JSON.parse(end.toString()) as ServiceEnd;
}

/** Until the connection ends, in whatever way. */
async function* chunksOf(socket: Socket): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of socket) yield chunk as Buffer;
  } catch (error) {
    if (socket.errored !== error) throw error;
  }
}
