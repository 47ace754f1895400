import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmod, readdir, rename, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '#runtime';

/** The service holds the lock on a directory, and runs commands. */
export class ServedDirectoryError extends StartupError {}

/** A lock on a directory. It ends with `release`, or with the process. */
export interface DirectoryLock {
  /** Passes connections of other processes to `handler`. Until then, and with undefined, they are closed at once. */
  serve(handler: ((socket: Socket) => void) | undefined): void;
  release(): Promise<void>;
}

/** Longest wait in ms for a process that holds the lock only for a while: a command, or a service that starts or stops. */
export const LOCK_WAIT_MS = 10_000;

/** Time in ms between two attempts to get the lock. */
export const LOCK_RETRY_MS = 100;

const SUFFIX = '.lock';
/** Longest path of a Unix domain socket, in bytes, that every supported system accepts. Node shortens a longer one silently. */
const MAX_SOCKET_PATH = 103;

/**
 * Locks a directory against every other process of this machine.
 *
 * Each process listens on a Unix domain socket in the directory, and then looks for the sockets of other processes. A
 * socket that refuses belongs to a dead process, even after SIGKILL. Of two processes that start together at least one
 * sees the other.
 *
 * @param waitMs longest wait for another process. A service, which answers on its socket, is not waited for
 * @throws StartupError when another process holds the lock (ServedDirectoryError: a service), everybody may write to the
 *   directory, or its path is too long for a socket; any error of the system
 */
export async function lockDirectory(directory: string, waitMs = LOCK_WAIT_MS): Promise<DirectoryLock> {
  const latest = performance.now() + waitMs;
  for (;;) {
    const attempt = await tryToLock(directory);
    if ('release' in attempt) return attempt;
    const { socket, name } = attempt;
    const pid = name.split('-')[0];
    const inUse = `DATA_DIR '${directory}' is in use by process ${pid}. Stop it, by Ctrl+C, 'kill ${pid}' or its supervisor, or set another DATA_DIR.`;
    if (socket !== undefined && (await answers(socket, latest - performance.now())))
      throw new ServedDirectoryError(inUse);
    if (socket === undefined || performance.now() >= latest) throw new StartupError(inUse);
    // A random time: two processes that see each other must not meet again.
    await sleep(randomInt(LOCK_RETRY_MS / 2, LOCK_RETRY_MS * 2));
  }
}

/** Whether the process behind a socket answers, as a service does even if nobody understands the request; others hang up. */
async function answers(socket: Socket, waitMs: number): Promise<boolean> {
  socket.setTimeout(Math.max(waitMs, 1), () => socket.destroy()).write('?\r\n\r\n');
  const pieces = socket[Symbol.asyncIterator]();
  const { done } = await pieces.next().catch(() => ({ done: true }));
  socket.destroy();
  return done !== true;
}

/** The lock, or the process that holds it. */
async function tryToLock(directory: string): Promise<DirectoryLock | Owner> {
  const name = `${process.pid}-${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = join(directory, name);
  // The socket gets its final name once it accepts connections: other processes remove sockets that refuse.
  const draft = `${path}~`;
  if (Buffer.byteLength(draft) > MAX_SOCKET_PATH) {
    throw new StartupError(`DATA_DIR '${directory}' has too long a path. Set DATA_DIR to one of at most 70 bytes.`);
  }
  let serve: ((socket: Socket) => void) | undefined;
  const server = createServer((socket) => (serve === undefined ? socket.destroy() : serve(socket))).unref();
  await once(server.listen({ path: draft }), 'listening');
  await chmod(draft, 0o600);
  const fault = await accessFault(directory, draft);
  if (fault !== undefined) {
    await new Promise((done) => server.close(done));
    throw fault;
  }
  await rename(draft, path);
  const release = async (): Promise<void> => {
    await rm(path, { force: true });
    await new Promise((done) => server.close(done));
  };
  const others = (await readdir(directory)).filter((other) => other !== name);
  const owner = await findOwner(directory, others);
  if (owner === undefined) return { serve: (handler) => void (serve = handler), release };
  await release();
  return owner;
}

/** A process that holds the lock; without a socket, this user may not connect to it. */
interface Owner {
  readonly name: string;
  readonly socket?: Socket;
}

/**
 * The refusal of a directory that everybody may write: a stranger could rename what is in it. The sticky bit would prevent
 * that, but not a database, or a socket, that is there first. A group may have the right, as it has on Kubernetes' volumes.
 *
 * @param ours a file in the directory that was given to its owner alone. If others have rights to it nevertheless, modes have no
 *   effect there, as on most file systems of Windows: that is only reported
 */
async function accessFault(directory: string, ours: string): Promise<StartupError | undefined> {
  const { mode } = await stat(directory);
  if ((mode & 0o002) === 0) return undefined;
  if (((await stat(ours)).mode & 0o077) !== 0) {
    const { Logger } = await import('@nestjs/common');
    new Logger('EmbeddedEngine').warn(
      `The file system of DATA_DIR '${directory}' has no access rights: every user of this machine may read and change the data.`,
    );
    return undefined;
  }
  return new StartupError(
    `Everybody may write to DATA_DIR '${directory}', and so replace the database. Run: chmod o-w '${directory}', ` +
      'or set DATA_DIR to a new directory in it.',
  );
}

/**
 * Connects to the process that holds the lock on a directory; undefined if there is none.
 *
 * @throws StartupError when the process belongs to another user
 */
export async function connectToOwner(directory: string): Promise<Socket | undefined> {
  const owner = await findOwner(directory, await readdir(directory).catch(() => []));
  if (owner === undefined) return undefined;
  const { socket, name } = owner;
  const { uid } = await stat(join(directory, name)).catch(() => ({ uid: undefined }));
  if (socket !== undefined && uid === process.getuid?.()) return socket;
  socket?.destroy();
  throw new StartupError(
    `The process that uses DATA_DIR '${directory}' belongs to another user. Run the command as that user.`,
  );
}

/** The socket of a living process among the files of a directory; removes those of dead processes. */
async function findOwner(directory: string, files: readonly string[]): Promise<Owner | undefined> {
  for (const name of files.filter((file) => file.endsWith(SUFFIX))) {
    const path = join(directory, name);
    const socket = connect({ path });
    try {
      // The kernel accepts the connection even if the process is busy or stopped.
      await once(socket, 'connect');
      return { name, socket };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ECONNREFUSED' && code !== 'ENOENT') return { name };
      await rm(path, { force: true });
    }
  }
  return undefined;
}
