import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from './peers.js';

/** Unit of processor times in /proc; 100 per second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** A running server of the benchmark. */
export interface RunningServer {
  readonly name: string;
  readonly origin: string;
  /** Time in ms from the start of the process to its first response. */
  readonly startUpMs: number;
  /** Processor time in µs, user and system, of the process and its descendants since their start. */
  cpuUs(): number;
  /** Largest resident memory so far, in MiB; the sum over the process and its descendants. */
  peakMemoryMiB(): number;
  /** Suspends its processes until `resume`. */
  suspend(): void;
  resume(): void;
  stop(): Promise<void>;
}

/** Starts a server and waits for its first response to `path`, at most 60 s. */
export async function startServer(
  name: string,
  command: Command,
  environment: Record<string, string>,
  path: string,
  apiKey: string,
): Promise<RunningServer> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const startedAt = performance.now();
  // The usual limit of 1,000 open files is too small for thousands of connections.
  const child = spawn('sh', ['-c', 'ulimit -n "$(ulimit -Hn)"; exec "$@"', 'sh', ...command], {
    env: { PATH: process.env['PATH'], ...environment, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const pid = child.pid as number;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (;;) {
    const headers = { authorization: `Bearer ${apiKey}` };
    const answer = await fetch(origin + path, { headers }).catch(() => undefined);
    if (answer?.ok) break;
    if (child.exitCode !== null || performance.now() - startedAt > 60_000) {
      child.kill('SIGKILL');
      throw new Error(`${name} does not respond to ${path}: ${answer ? await answer.text() : 'no connection'}`);
    }
    await sleep(5);
  }
  return {
    name,
    origin,
    startUpMs: performance.now() - startedAt,
    cpuUs: () => cpuUs([pid, ...descendants(pid)]),
    suspend: () => signal([pid, ...descendants(pid)], 'SIGSTOP'),
    resume: () => signal([pid, ...descendants(pid)], 'SIGCONT'),
    peakMemoryMiB: () => [pid, ...descendants(pid)].reduce((sum, each) => sum + peakMemoryMiB(each), 0),
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(timer);
    },
  };
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // The process has ended.
    }
  }
}

/** Processor time in µs of these processes and of those of their children that have ended. */
export function cpuUs(pids: number[]): number {
  return pids.reduce((sum, pid) => sum + ticks(pid), 0) * (1_000_000 / TICKS_PER_SECOND);
}

/** All descendants of a process. */
export function descendants(pid: number): number[] {
  const parents = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? fieldsOf(Number(name)) : undefined;
    if (stat) parents.set(Number(stat[1]), [...(parents.get(Number(stat[1])) ?? []), Number(name)]);
  }
  const found: number[] = [];
  for (let level = [pid]; level.length > 0;) {
    level = level.flatMap((each) => parents.get(each) ?? []);
    found.push(...level);
  }
  return found;
}

function ticks(pid: number): number {
  const fields = fieldsOf(pid);
  // Fields 14 to 17 of proc(5): utime, stime, cutime, cstime. proc(5) counts from 1, and `fields` begins with field 3.
  return fields ? fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) : 0;
}

/**
 * The fields of /proc/<pid>/stat after the command's name, starting with the state; undefined when the process has
 * ended.
 */
function fieldsOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function peakMemoryMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
