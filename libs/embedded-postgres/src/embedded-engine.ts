import type { PGlite } from '@electric-sql/pglite';
import { Logger } from '@nestjs/common';
import { execFile, type ExecFileException } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { promisify } from 'node:util';
import { StartupError } from '#runtime';
import { abandon, surfaceCrashes } from './pglite.internals.js';
import { clusterAdvice, isCluster, prepareCluster } from './cluster-files.js';
import { CLUSTER, MAX_ENGINE_FILES } from './data-directory.js';
import { type DirectoryLock, lockDirectory } from './directory-lock.js';
import { EngineStream } from './engine-stream.js';
import { TransactionGuard } from './transaction-guard.js';

const DRAFT_PREFIX = 'initdb-';

/**
 * Depth in kB of PostgreSQL's stack at which it refuses a statement with 54001: a tenth of its default. The engine uses V8's
 * stack, too, which is about as small, and of which PostgreSQL knows nothing: its end is that of the engine.
 */
const MAX_STACK_DEPTH_KB = 200;

/** Number of crashes in a row after which the engine is not opened again. */
const MAX_CRASHES = 10;

/** An engine that has run for so many ms before it crashes begins a new row of crashes. */
const STEADY_AFTER_MS = 10_000;

/**
 * PostgreSQL inside this process (PGlite), with its data in a directory that it locks.
 *
 * A committed change survives the end of the process, even by SIGKILL. It may not survive a power failure, which can also
 * destroy the whole database: PGlite does not wait for the disk (fsync). Set DATABASE_URL for more than one person's use.
 *
 * A statement can end the engine, such as one that nests too deeply. It is opened again at once: connections wait for that,
 * and see every committed change.
 */
export class EmbeddedEngine {
  /** Resolves when the engine cannot be opened again. The process must end then, so that its supervisor starts it. */
  readonly lost: Promise<StartupError>;
  /** False after a crash until the engine is open again. */
  isOpen = true;

  /** Refuses the connection to code inside a transaction that this guard watches. */
  readonly guard = new TransactionGuard();

  private readonly log = new Logger('EmbeddedEngine');
  private loseFor!: (reason: StartupError) => void;
  private engine: Promise<PGlite>;
  private openedAt = performance.now();
  private crashes = 0;
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly dataDir: string,
    private current: PGlite,
    /** The lock on the directory; it also accepts connections of other processes. */
    readonly lock: DirectoryLock,
  ) {
    this.lost = new Promise((resolve) => (this.loseFor = resolve));
    this.engine = Promise.resolve(current);
  }

  /**
   * Opens the database in a directory. Makes the directory, in one that exists, and the database.
   *
   * @throws StartupError when the path is no writable directory or everybody may write there, another process uses it, or the
   *   database belongs to another user, has another major version or is damaged
   */
  static async open(dataDir: string): Promise<EmbeddedEngine> {
    const lock = await makeAndLock(dataDir);
    try {
      return new EmbeddedEngine(dataDir, await openCluster(dataDir, true), lock);
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /**
   * Options of the pool of `pg`, whose one connection has the engine's one session. It stays open while it is idle, because
   * the engine would reset its session for the next one. No time limit applies to its statements.
   */
  readonly poolOptions = {
    max: 1,
    idleTimeoutMillis: 0,
    user: 'postgres',
    database: 'postgres',
    // Never looked up: the connection's `stream` leads to the engine.
    host: 'embedded',
    ssl: false,
    stream: (): EngineStream =>
      new EngineStream(
        () => this.engine,
        (engine, thrown) => {
          if (engine === this.current && this.isOpen) this.replace(engine, thrown);
          return crashError(thrown);
        },
      ),
    /** Called before code gets the connection. */
    admit: this.guard.admit,
  };

  /** Also if it is closed already, as by TypeORM after an initialization that has failed. */
  close(): Promise<void> {
    return (this.closing ??= this.closeOnce());
  }

  private async closeOnce(): Promise<void> {
    try {
      await (await this.engine.catch(() => undefined))?.close();
    } finally {
      await this.lock.release();
    }
  }

  private replace(crashed: PGlite, thrown: unknown): void {
    this.isOpen = false;
    const isSteady = performance.now() - this.openedAt >= STEADY_AFTER_MS;
    this.crashes = isSteady ? 1 : this.crashes + 1;
    this.log.warn(`A statement has ended the embedded engine (${String(thrown)}). It is opened again.`);
    this.engine = this.reopen(crashed);
    this.engine.catch((error: unknown) => {
      const reason = `The embedded engine has ended, and is not opened again: ${(error as Error).message}`;
      this.loseFor(new StartupError(reason, { cause: error }));
    });
  }

  private async reopen(crashed: PGlite): Promise<PGlite> {
    const since = performance.now();
    abandon(crashed);
    try {
      if (this.crashes > MAX_CRASHES)
        throw new StartupError(`statements have ended it ${this.crashes} times in a row.`);
      this.current = await openCluster(this.dataDir, false);
    } catch (error) {
      // cannot_connect_now: callers get 503 until the process ends.
      throw Object.assign(error as Error, { code: '57P03' });
    }
    this.openedAt = performance.now();
    this.isOpen = true;
    this.log.log(`The embedded engine is open again after ${Math.round(this.openedAt - since)} ms.`);
    return this.current;
  }
}

/** The error of the statement that ended an engine. */
function crashError(thrown: unknown): Error {
  const { name, message } = (thrown ?? {}) as Partial<Error>;
  if (name === 'RangeError' && message?.includes('call stack')) {
    // PostgreSQL's own error (statement_too_complex): a commit does not nest, so the statement has had no effect.
    const error = new pg.DatabaseError('stack depth limit exceeded', 0, 'error');
    return Object.assign(error, { code: '54001', severity: 'ERROR', cause: thrown });
  }
  return new Error(`The embedded engine has ended (${String(thrown)})`, { cause: thrown });
}

/**
 * @param mayInitialise whether a missing database is made
 * @throws StartupError with the remedy
 */
async function openCluster(dataDir: string, mayInitialise: boolean): Promise<PGlite> {
  const cluster = resolve(dataDir, CLUSTER);
  try {
    if (mayInitialise && !(await isCluster(cluster))) await initialise(dataDir, cluster);
    else await prepareCluster(cluster);
    const { PGlite } = await import('@electric-sql/pglite');
    const limits = [`max_stack_depth=${MAX_STACK_DEPTH_KB}kB`, `max_files_per_process=${MAX_ENGINE_FILES}`];
    const startParams = [...PGlite.defaultStartParams, ...limits.flatMap((limit) => ['-c', limit])];
    const engine = await PGlite.create({ dataDir: cluster, startParams });
    surfaceCrashes(engine);
    return engine;
  } catch (error) {
    if (error instanceof StartupError) throw error;
    const reason = String((error as Error | undefined)?.message ?? error).split('\n')[0];
    const fault = `The embedded database in DATA_DIR '${dataDir}' does not open (${reason})`;
    throw new StartupError(`${fault}. ${await clusterAdvice(dataDir)}`, { cause: error });
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
  const args = ['--input-type=module', '--eval', INITDB_SCRIPT, import.meta.resolve('@electric-sql/pglite'), directory];
  // The child exits when its standard input closes, which also happens when this process is killed.
  await promisify(execFile)(process.execPath, args, { env: {} }).catch((cause: ExecFileException) => {
    const { stderr = '', code, signal } = cause;
    const reason = /^\w*Error: .*$/m.exec(stderr)?.[0] ?? signal ?? `exit code ${code}`;
    throw new Error(`initialising it failed (${reason})`, { cause });
  });
}
