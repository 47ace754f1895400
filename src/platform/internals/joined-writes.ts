import { Socket } from 'node:net';
import { logOtherInternals } from './other-internals.js';

type Chunks = { chunk: unknown; encoding: BufferEncoding }[];

/** Longest text in characters that is joined. Copying a longer text costs more than it saves. */
const MAX_JOINED_LENGTH = 65_536;

/**
 * Whether `joinWrites` works with this version of Node, by a trial on a socket without a connection. If not, logs one line.
 *
 * @param createProbe for tests
 */
export function canJoinWrites(createProbe: () => Socket = () => new Socket()): boolean {
  const difference = differenceOf(createProbe);
  if (difference !== undefined) logOtherInternals('joined-writes', difference);
  return difference === undefined;
}

/**
 * Lets a connection send waiting texts as one.
 *
 * Node ends each answer with an empty write, and passes both pieces to the system's gather write, for which it allocates a
 * buffer. A single text needs no buffer.
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
 * Whether a text and the next one give the same bytes joined as apart. In other encodings, and between the halves of a
 * surrogate pair, a character can begin in one text and end in the next; encoded apart, both halves would be replaced.
 */
function isJoinable(text: string, encoding: BufferEncoding): boolean {
  return encoding === 'latin1' || (encoding === 'utf8' && !endsInHighSurrogate(text));
}

function endsInHighSurrogate(text: string): boolean {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
}

/** Lets a socket send three waiting writes. Describes the difference to the expected behaviour, if any. */
function differenceOf(createProbe: () => Socket): string | undefined {
  try {
    if (typeof Socket.prototype._writev !== 'function') return "Node's sockets have no _writev";
    const probe = createProbe();
    const written: unknown[][] = [];
    probe._write = (chunk, encoding, callback) => {
      written.push([chunk, encoding]);
      callback();
    };
    joinWrites(probe);
    probe.cork();
    for (const text of ['a', '', 'b']) probe.write(text, 'latin1');
    probe.uncork();
    probe.destroy();
    const isExpected = written.length === 1 && written[0]?.[0] === 'ab' && written[0][1] === 'latin1';
    return isExpected ? undefined : "Node's sockets pass on waiting writes in another way";
  } catch (error) {
    return `Node's sockets fail on a trial write (${String(error)})`;
  }
}
