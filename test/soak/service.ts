import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const BUILD = join(import.meta.dirname, '../../dist/src');
const PROBE = new URL('probe.js', import.meta.url).href;

/** Longest time in ms for the service to start, and for it to answer the probe. */
const START_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 30_000;

/** What the process of the service holds at a moment, after a garbage collection. */
export interface Holdings {
  /** Bytes of objects of JavaScript. */
  readonly heapUsed: number;
  /** Bytes outside the heap that such objects hold, such as buffers and the memory of WebAssembly. */
  readonly external: number;
  /** Bytes of memory that the process has of the system. */
  readonly rss: number;
  /** Processor time in µs since the start. */
  readonly cpuUs: number;
  /** Open file descriptors: files, connections, pipes. */
  readonly descriptors: number;
  /** What keeps the event loop alive, by kind: timers, sockets, requests under way. */
  readonly resources: readonly string[];
}

/** The built service as a process of its own, with a probe in it. */
export class ProbedService {
  /** Lines of its log of level error: each needs a person, and a soak must need none. */
  errors = 0;
  /** What it tells the person at the console. */
  stderr = '';
  private readonly child: ChildProcess;
  private readonly ended: Promise<unknown>;

  constructor(settings: Readonly<Record<string, string>>, directory: string) {
    this.child = fork(join(BUILD, 'main.js'), [], {
      cwd: directory,
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', HOST: '127.0.0.1', PORT: '0', ...settings },
      execArgv: ['--expose-gc', '--import', PROBE],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text.split('"level":50').length - 1;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.child, 'close');
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** `http://127.0.0.1:<port>`, when it listens. */
  async origin(): Promise<string> {
    for (const deadline = performance.now() + START_TIMEOUT_MS; performance.now() < deadline; await sleep(20)) {
      const port = /listens on http:\/\/localhost:(\d+)\/v1 /.exec(this.stderr)?.[1];
      if (port !== undefined) return `http://127.0.0.1:${port}`;
      if (!this.isRunning) break;
    }
    throw new Error(`The service does not start:\n${this.stderr}`);
  }

  /** What it holds at this moment. */
  async probe(): Promise<Holdings> {
    const answer = once(this.child, 'message', { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    this.child.send('probe');
    const [holdings] = (await answer) as [Holdings];
    return holdings;
  }

  /** Stops it, by force if it does not within 30 s. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 30_000);
    await this.ended;
    clearTimeout(timer);
  }
}

/** Runs a command of the built `petstore`; what it prints. */
export async function petstore(settings: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const options = { env: { PATH: process.env['PATH'], ...settings } };
  return (await promisify(execFile)(process.execPath, [join(BUILD, 'cli.js'), ...args], options)).stdout.trim();
}
