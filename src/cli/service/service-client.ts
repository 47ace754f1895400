import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Config } from '../../config.js';
import { CommandError } from '../command/command-error.js';
import { commandSocket, type Message, SERVED } from './service-protocol.js';
import type { Terminal } from '../command/terminal.js';
import { createOutputFile, type OutputFile } from '../transfer/output-file.js';

/**
 * Sends a command to the service that runs on DATA_DIR, and prints and writes what the service sends back.
 *
 * @returns the exit code; undefined when no service runs there
 * @throws CommandError when the service belongs to another user, or ends before the command, or a file cannot be written
 */
export async function runInService(
  { dataDir }: Config,
  words: readonly string[],
  terminal: Terminal,
): Promise<number | undefined> {
  if (!SERVED.includes(words[0] ?? '')) return undefined;
  const socket = await connectToService(dataDir);
  if (socket === undefined) return undefined;
  socket.on('error', () => undefined);
  socket.write(`${JSON.stringify(words)}\n`);
  let file: OutputFile | undefined;
  try {
    for await (const line of createInterface({ input: socket })) {
      const message = JSON.parse(line) as Message;
      if ('print' in message) terminal.print(message.print);
      else if ('tell' in message) terminal.tell(message.tell);
      else if ('progress' in message) await terminal.progress(...message.progress);
      else if ('create' in message) {
        file = await createOutputFile(message.create.path, message.create.overwrite);
        socket.write('\n');
      } else if ('write' in message) await file?.write(Buffer.from(message.write, 'base64'));
      else if ('complete' in message) await file?.complete();
      else return message.exit;
    }
  } finally {
    socket.destroy();
    await file?.discard();
  }
  throw new CommandError('The service ended before the command.');
}

/** @throws CommandError when the service belongs to another user */
async function connectToService(dataDir: string): Promise<Socket | undefined> {
  const socket = connect({ path: commandSocket(dataDir) });
  const failure = await new Promise<NodeJS.ErrnoException | undefined>((done) => {
    socket.once('connect', () => done(undefined)).once('error', done);
  });
  if (failure?.code === 'EACCES') {
    throw new CommandError(
      `The service that uses DATA_DIR '${dataDir}' belongs to another user. Run the command as that user.`,
    );
  }
  return failure === undefined ? socket : undefined;
}
