import { Socket } from 'node:net';

type Chunks = { chunk: unknown; encoding: BufferEncoding }[];

/** Longest text, in characters, that is joined; the copy of a longer one costs more than it saves. */
const MAX_JOINED_LENGTH = 65_536;

/**
 * Lets a connection send texts that wait together as one.
 *
 * Node ends every answer with a write of no bytes behind it, and hands two pieces to the system's gather write, for which it
 * allocates a buffer. One piece of text it writes without.
 */
export function joinWrites(socket: Socket): void {
  socket._writev = writeJoined;
}

function writeJoined(this: Socket, chunks: Chunks, callback: (error?: Error | null) => void): void {
  let text = '';
  let encoding: BufferEncoding | undefined;
  for (const piece of chunks) {
    const { chunk } = piece;
    if (chunk === '') continue;
    if (
      typeof chunk !== 'string' ||
      (encoding !== undefined && (encoding !== piece.encoding || !isJoinable(text, encoding))) ||
      text.length + chunk.length > MAX_JOINED_LENGTH
    ) {
      Socket.prototype._writev?.call(this, chunks, callback);
      return;
    }
    text += chunk;
    encoding = piece.encoding;
  }
  this._write(text, encoding ?? 'latin1', callback);
}

/**
 * Whether a text and what follows it have the same bytes together as each by itself. Elsewhere a character may begin in one
 * text and end in the next, and alone both halves are replaced.
 */
function isJoinable(text: string, encoding: BufferEncoding): boolean {
  return encoding === 'latin1' || (encoding === 'utf8' && !endsInHighSurrogate(text));
}

function endsInHighSurrogate(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
}
