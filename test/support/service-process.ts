import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { FAST_PATHS_SETTING } from './fast-paths.js';

/** Node's arguments that start the built service. */
const BUILD = [new URL('../../dist/src/main.js', import.meta.url).pathname];

/** One process of the service, on a port of its own unless the settings name one. */
export class ServiceProcess {
  stdout = '';
  stderr = '';
  /** The exit code when it has ended; null when a signal ended it. */
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  /**
   * @param cwd working directory, where a `.env` counts and relative paths begin
   * @param options Node's arguments that start another installation, and whom it runs as, which only root can choose
   */
  constructor(
    settings: Readonly<Record<string, string>>,
    cwd: string,
    { program = BUILD, ...user }: { program?: readonly string[]; uid?: number; gid?: number } = {},
  ) {
    this.child = spawn(process.execPath, program, {
      ...user,
      cwd,
      env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: '0', ...FAST_PATHS_SETTING, ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(this.child, 'close').then(([code]) => code as number | null);
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** `http://localhost:<port>`, when it listens; 60 s at the most. */
  async origin(): Promise<string> {
    for (let waited = 0; waited < 60_000; waited += 20) {
      const address = /listens on (http:\/\/localhost:\d+)\/v1 /.exec(this.stderr)?.[1];
      if (address !== undefined) return address;
      if (!this.isRunning) break;
      await sleep(20);
    }
    throw new Error(`The service does not start:\n${this.stdout}${this.stderr}`);
  }

  /** Sends a signal, and waits for the end of the process. */
  async stop(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    return this.ended;
  }

  async kill(): Promise<void> {
    if (this.isRunning) await this.stop('SIGKILL');
  }
}
