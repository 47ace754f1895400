import { randomBytes } from 'node:crypto';
import { readdir, rename, unlink } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartupError } from '../../errors/startup-error.js';

/** A directory that this process alone may use, until it closes the lock or dies. */
export interface DirectoryLock {
  release(): Promise<void>;
}

const SUFFIX = '.lock';
const ATTEMPTS = 6;
/** Bytes of a socket's path that every system takes. */
const MAX_SOCKET_PATH = 103;

/**
 * Locks a directory against every other process of this machine.
 *
 * Each process that wants the directory listens on a Unix domain socket in it, and then looks for those of others: one
 * that answers belongs to a process that lives, one that does not to a process that has died, however it died. As every
 * process publishes its socket before it looks, of two that come at once at least one sees the other.
 *
 * @throws StartupError when a living process holds the directory, or it cannot hold a socket
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
    // Two that saw each other have both withdrawn; one of them comes back first.
    await sleep(20 + Math.random() * 100);
  }
  throw new StartupError(
    `DATA_DIR '${directory}' is in use by process ${owner.split('-')[0]}. Stop it, or set another DATA_DIR.`,
  );
}

async function publish(directory: string): Promise<(DirectoryLock & { name: string }) | undefined> {
  const name = `${process.pid}-${randomBytes(4).toString('hex')}${SUFFIX}`;
  const path = socketPath(directory, name);
  // Seen under its final name only when it answers: others take a socket that does not for one of the dead.
  const draft = `${path}~`;
  const server = createServer((socket) => socket.destroy()).unref();
  try {
    await listen(server, draft);
  } catch (error) {
    throw new StartupError(`DATA_DIR '${directory}' cannot be locked: ${(error as Error).message}.`, { cause: error });
  }
  const release = async (): Promise<void> => {
    await remove(path);
    await new Promise((done) => server.close(done));
  };
  try {
    await rename(draft, path);
  } catch {
    await release();
    return undefined;
  }
  return { name, release };
}

/** The name of another process's socket that answers. Those that do not are removed on the way. */
async function findOther(directory: string, own: string): Promise<string | undefined> {
  for (const name of await readdir(directory)) {
    if (name === own || !name.endsWith(SUFFIX)) continue;
    const path = socketPath(directory, name);
    if (await answers(path)) return name;
    await remove(path);
  }
  return undefined;
}

function answers(path: string): Promise<boolean> {
  return new Promise((answer) => {
    const socket = connect({ path });
    // The kernel accepts, even while the process behind it is busy or stopped.
    socket.once('connect', () => {
      socket.destroy();
      answer(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => answer(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', fail);
    server.listen({ path }, done);
  });
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

function socketPath(directory: string, name: string): string {
  const absolute = resolve(directory, name);
  const candidates = [absolute, join('.', relative(process.cwd(), absolute))];
  const path = candidates.reduce((a, b) => (Buffer.byteLength(b) < Buffer.byteLength(a) ? b : a));
  if (Buffer.byteLength(path) >= MAX_SOCKET_PATH) {
    throw new StartupError(`DATA_DIR '${directory}' has too long a path. Set DATA_DIR to one of at most 70 bytes.`);
  }
  return path;
}
