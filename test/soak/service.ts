import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const BUILD = join(import.meta.dirname, '../../dist/src');
const PROBE = new URL('probe.js', import.meta.url).href;

/** Longest time in ms for the service to start, and for the probe to answer. */
const START_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 30_000;

/** Resources of the service's process, measured after a garbage collection. */
export interface Holdings {
  /** Bytes of JavaScript objects. */
  readonly heapUsed: number;
  /** Bytes outside the heap that such objects own, such as buffers and WebAssembly memory. */
  readonly external: number;
  /** Resident memory in bytes. */
  readonly rss: number;
  /** Processor time in µs since the start of the process. */
  readonly cpuUs: number;
  /** Open file descriptors: files, connections, pipes. */
  readonly descriptors: number;
  /** Kinds of the resources that keep the event loop alive: timers, sockets, requests in flight. */
  readonly resources: readonly string[];
}

/** The built service in a separate process, with a probe in it. */
export class ProbedService {
  /** Number of log lines of level error: each needs a person, so a soak must have none. */
  errors = 0;
  /** Standard error of the process. */
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

  /** `http://127.0.0.1:<port>`, once the service listens. */
  async origin(): Promise<string> {
    for (const deadline = performance.now() + START_TIMEOUT_MS; performance.now() < deadline; await sleep(20)) {
      const port = /listens on http:\/\/localhost:(\d+)\/v1\n/.exec(this.stderr)?.[1];
      if (port !== undefined) return `http://127.0.0.1:${port}`;
      if (!this.isRunning) break;
    }
    throw new Error(`The service does not start:\n${this.stderr}`);
  }

  /** Asks the probe for the current figures. */
  async probe(): Promise<Holdings> {
    const answer = once(this.child, 'message', { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    this.child.send('probe');
    const [holdings] = (await answer) as [Holdings];
    return holdings;
  }

  /** Stops the service, with SIGKILL if it takes longer than 30 s. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 30_000);
    await this.ended;
    clearTimeout(timer);
  }
}

/** Runs a command of the built `petstore` and returns its output. */
export async function petstore(settings: Readonly<Record<string, string>>, ...args: string[]): Promise<string> {
  const options = { env: { PATH: process.env['PATH'], ...settings } };
  return (await promisify(execFile)(process.execPath, [join(BUILD, 'cli.js'), ...args], options)).stdout.trim();
}
