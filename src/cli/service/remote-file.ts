import type { Socket } from 'node:net';
import { CommandError } from '../command/command-error.js';
import type { OutputFile } from '../transfer/output-file.js';
import type { Message } from './service-protocol.js';

/** Bytes in one message, before base64. Bounds the memory of the client, which buffers a few hundred messages. */
const WRITE_BYTES = 48 * 1024;

/** A file that the client process writes. */
export class RemoteFile implements OutputFile {
  constructor(
    private readonly socket: Socket,
    private readonly send: (message: Message) => void,
    private readonly end: AbortSignal,
  ) {}

  async write(bytes: Buffer): Promise<void> {
    for (let start = 0; start < bytes.length; start += WRITE_BYTES) {
      this.send({ write: bytes.toString('base64', start, start + WRITE_BYTES) });
      if (this.socket.writableNeedDrain) await waitFor(this.socket, 'drain', this.end);
      if (!this.socket.readable) throw nobodyWaits();
    }
  }

  complete(): Promise<void> {
    this.send({ complete: true });
    return Promise.resolve();
  }

  /** The client process removes an incomplete file at the end of the command. */
  discard(): Promise<void> {
    return Promise.resolve();
  }
}

/** Waits for an event of the socket or for its end. When `end` aborts, the connection is closed. */
export async function waitFor(socket: Socket, event: 'data' | 'drain', end: AbortSignal): Promise<void> {
  if (socket.closed) return;
  const giveUp = (): void => void socket.destroy();
  end.addEventListener('abort', giveUp);
  if (end.aborted) giveUp();
  await new Promise<void>((done) => {
    const settle = (): void => {
      socket.off(event, settle).off('close', settle);
      done();
    };
    socket.once(event, settle).once('close', settle);
  });
  end.removeEventListener('abort', giveUp);
}

export function nobodyWaits(): CommandError {
  return new CommandError('Nobody waits for the result.');
}
