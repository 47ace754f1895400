import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, readdir, rename, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '../../errors/startup-error.js';

/** A lock on a directory. It ends with `release`, or with the process. */
export interface DirectoryLock {
  /** Passes connections of other processes to `handler`. Until then, and with undefined, they are closed at once. */
  serve(handler: ((socket: Socket) => void) | undefined): void;
  release(): Promise<void>;
}

const SUFFIX = '.lock';
const ATTEMPTS = 6;
/** Longest path of a Unix domain socket, in bytes, that every supported system accepts. */
const MAX_SOCKET_PATH = 103;

/**
 * Locks a directory against every other process of this machine.
 *
 * Each process listens on a Unix domain socket in the directory, and then looks for the sockets of other processes. A
 * socket that accepts a connection belongs to a living process; one that refuses belongs to a dead process, even after
 * SIGKILL. Every process publishes its socket before it looks, so of two that start together at least one sees the other.
 *
 * @throws StartupError when another process holds the lock, or no socket can be made in the directory
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  let owner = '';
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const lock = await publish(directory);
    if (lock !== undefined) {
      const other = await findOther(directory, lock.name);
      if (other === undefined) return lock;
      await lock.release();
      owner = other;
    }
    // Two processes that saw each other have both withdrawn. A random delay lets one of them come first.
    await sleep(20 + Math.random() * 100);
  }
  throw new StartupError(
    `DATA_DIR '${directory}' is in use by process ${owner.split('-')[0]}. Stop it, or set another DATA_DIR.`,
  );
}

/** Makes this process's socket; undefined when another process has just removed it. */
async function publish(directory: string): Promise<(DirectoryLock & { name: string }) | undefined> {
  const name = `${process.pid}-${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = socketPath(directory, name);
  // The socket gets its final name once it accepts connections: other processes remove sockets that refuse.
  const draft = `${path}~`;
  let serve: ((socket: Socket) => void) | undefined;
  const server = createServer((socket) => (serve === undefined ? socket.destroy() : serve(socket))).unref();
  try {
    await once(server.listen({ path: draft }), 'listening');
    await chmod(draft, 0o600);
  } catch (error) {
    throw new StartupError(`DATA_DIR '${directory}' cannot be locked: ${(error as Error).message}.`, { cause: error });
  }
  const release = async (): Promise<void> => {
    await rm(path, { force: true });
    await new Promise((done) => server.close(done));
  };
  try {
    await rename(draft, path);
  } catch {
    await release();
    return undefined;
  }
  return { name, serve: (handler) => void (serve = handler), release };
}

/** The name of a living process's socket. Removes the sockets of dead processes. */
async function findOther(directory: string, own: string): Promise<string | undefined> {
  for (const name of await readdir(directory)) {
    if (name === own || !name.endsWith(SUFFIX)) continue;
    const path = socketPath(directory, name);
    // The kernel accepts the connection even if the process is busy or stopped.
    const connection = await connectTo(path);
    if (typeof connection === 'object') connection.destroy();
    if (!isOfDead(connection)) return name;
    await rm(path, { force: true });
  }
  return undefined;
}

/** Whether nobody listens on a socket, or it has been removed meanwhile. */
function isOfDead(connection: Socket | string): boolean {
  return connection === 'ECONNREFUSED' || connection === 'ENOENT';
}

/** A connection, or the code of the error. */
function connectTo(path: string): Promise<Socket | string> {
  return new Promise((done) => {
    const socket = connect({ path });
    socket.once('connect', () => done(socket)).once('error', ({ code }: NodeJS.ErrnoException) => done(code ?? ''));
  });
}

/**
 * Connects to the process that holds the lock on a directory; undefined if there is none.
 *
 * @throws StartupError when the process belongs to another user
 */
export async function connectToOwner(directory: string): Promise<Socket | undefined> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.endsWith(SUFFIX)) continue;
    const path = socketPath(directory, name);
    const owner = await stat(path).catch(() => undefined);
    const connection = await connectTo(path);
    if (isOfDead(connection)) continue;
    if (typeof connection === 'object') {
      if (owner?.uid === process.getuid?.()) return connection;
      connection.destroy();
    }
    throw new StartupError(
      `The process that uses DATA_DIR '${directory}' belongs to another user. Run the command as that user.`,
    );
  }
  return undefined;
}

/** @throws StartupError when the path of a socket would be too long */
function socketPath(directory: string, name: string): string {
  const path = join(directory, name);
  if (Buffer.byteLength(path) >= MAX_SOCKET_PATH) {
    throw new StartupError(`DATA_DIR '${directory}' has too long a path. Set DATA_DIR to one of at most 70 bytes.`);
  }
  return path;
}
