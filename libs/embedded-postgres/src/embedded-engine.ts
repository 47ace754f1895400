import type { PGlite } from '@electric-sql/pglite';
import { execFile, type ExecFileException } from 'node:child_process';
import { existsSync } from 'node:fs';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { StartupError } from '#errors';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { EngineStream } from './engine-stream.js';

const CLUSTER = 'postgres';
const DRAFT_PREFIX = 'initdb-';

/**
 * PostgreSQL inside this process (PGlite), with its data in a directory that it locks.
 *
 * A committed change survives the end of the process, even by SIGKILL. It may not survive a power failure, which can also
 * destroy the whole database: PGlite does not wait for the disk (fsync). Set DATABASE_URL for more than one person's use.
 */
export class EmbeddedEngine {
  private constructor(
    private readonly pglite: PGlite,
    /** The lock on the directory; it also accepts connections of other processes. */
    readonly lock: DirectoryLock,
  ) {}

  /**
   * Opens the database in a directory. Makes the directory, in one that exists, and the database.
   *
   * @throws StartupError when the path is no writable directory, another process uses it, or the database belongs to another
   *   user or is damaged
   */
  static async open(dataDir: string): Promise<EmbeddedEngine> {
    const lock = await makeAndLock(dataDir);
    const cluster = resolve(dataDir, CLUSTER);
    try {
      if (existsSync(cluster)) await refuseForeign(cluster);
      else await initialise(dataDir, cluster);
      const { PGlite } = await import('@electric-sql/pglite');
      return new EmbeddedEngine(await PGlite.create({ dataDir: cluster }), lock);
    } catch (error) {
      await lock.release();
      if (error instanceof StartupError) throw error;
      const reason = String((error as Error | undefined)?.message ?? error).split('\n')[0];
      const file = await unusableFile(cluster);
      const advice =
        file === undefined
          ? 'If its disk is full, free 64 MiB; if it is no local disk, move it to one: nothing that was stored is lost. ' +
            'Restore a backup only if neither helps.'
          : `This user may not read and write '${file}': give it to this user (chown). Nothing that was stored is lost.`;
      throw new StartupError(`The embedded database in DATA_DIR '${dataDir}' does not open (${reason}). ${advice}`, {
        cause: error,
      });
    }
  }

  /** The `stream` option of a `pg` pool. The engine has one session, so the pool must be limited to one connection. */
  readonly createStream = (): EngineStream => new EngineStream(this.pglite);

  async close(): Promise<void> {
    try {
      await this.pglite.close();
    } finally {
      await this.lock.release();
    }
  }
}

async function makeAndLock(dataDir: string): Promise<DirectoryLock> {
  try {
    await mkdir(dataDir, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    return await lockDirectory(dataDir);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(
      `DATA_DIR '${dataDir}' cannot be used (${(error as Error).message}). Set DATA_DIR to a directory that can be written, or DATABASE_URL.`,
      { cause: error },
    );
  }
}

/** @throws StartupError for the database of another user, who could not open the files that this process would make */
async function refuseForeign(cluster: string): Promise<void> {
  const { uid } = await stat(cluster);
  if (uid === process.geteuid?.()) return;
  throw new StartupError(`The database '${cluster}' belongs to the user with the id ${uid}. Run this as that user.`);
}

async function unusableFile(cluster: string): Promise<string | undefined> {
  const names = await readdir(cluster, { recursive: true }).catch(() => []);
  for (const path of [cluster, ...names.map((name) => join(cluster, name))]) {
    try {
      await access(path, constants.R_OK | constants.W_OK);
    } catch {
      return path;
    }
  }
  return undefined;
}

/** Runs initdb in a child process: it needs about 500 MB, which a process returns to the system only when it ends. */
const INITDB_SCRIPT = `
  process.stdin.on('end', () => process.exit(1)).resume();
  const [pglite, directory] = process.argv.slice(1);
  const { PGlite } = await import(pglite);
  await (await PGlite.create({ dataDir: directory })).close();
  process.exit(0);
`;

/** Makes the database under a temporary name and renames it at the end: a killed process leaves no incomplete database. */
async function initialise(dataDir: string, cluster: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    // Left over from a process that was killed during initdb.
    if (name.startsWith(DRAFT_PREFIX)) await rm(join(dataDir, name), { recursive: true, force: true });
  }
  const draft = await mkdtemp(resolve(dataDir, DRAFT_PREFIX));
  // The reason why the first start takes seconds.
  if (process.stderr.isTTY) process.stderr.write('Preparing the database…\n');
  try {
    await runInitdb(draft);
    await rename(draft, cluster);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

async function runInitdb(directory: string): Promise<void> {
  const pglite = pathToFileURL(createRequire(import.meta.url).resolve('@electric-sql/pglite')).href;
  const args = ['--input-type=module', '--eval', INITDB_SCRIPT, pglite, directory];
  try {
    // The child exits when its standard input closes, which also happens when this process is killed.
    await promisify(execFile)(process.execPath, args, { env: {} });
  } catch (error) {
    const { stderr = '', code, signal } = error as ExecFileException;
    const reason = /^\w*Error: .*$/m.exec(stderr)?.[0] ?? signal ?? `exit code ${code}`;
    throw new Error(`initialising it failed (${reason})`, { cause: error });
  }
}
