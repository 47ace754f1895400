import { Socket } from 'node:net';
import { logOtherInternals } from '../../internals/other-internals.js';

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
 * Lets a connection drop empty writes, by the two methods that Node documents for implementers of streams.
 *
 * Node ends each answer with an empty write, and passes it with the answer to the system's gather write, for which it
 * allocates a buffer. A single text needs no buffer.
 */
export function joinWrites(socket: Socket): void {
  socket._writev = writeOne;
}

function writeOne(
  this: Socket,
  chunks: { chunk: unknown; encoding: BufferEncoding }[],
  callback: (error?: Error | null) => void,
): void {
  const [first, second] = chunks;
  if (first !== undefined && chunks.length === 2 && second?.chunk === '') {
    this._write(first.chunk, first.encoding, callback);
  } else {
    Socket.prototype._writev?.call(this, chunks, callback);
  }
}

/** Lets a socket send two waiting writes. Describes the difference to the expected behaviour, if any. */
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
    for (const text of ['a', '']) probe.write(text, 'latin1');
    probe.uncork();
    probe.destroy();
    const isExpected = written.length === 1 && written[0]?.[0] === 'a' && written[0][1] === 'latin1';
    return isExpected ? undefined : "Node's sockets pass on waiting writes in another way";
  } catch (error) {
    return `Node's sockets fail on a trial write (${String(error)})`;
  }
}
