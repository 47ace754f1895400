import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Node's arguments for the built service. */
const BUILD = [join(import.meta.dirname, '../../dist/bundle/main.js')];

/** A process of the service, on a free port unless the settings name one. */
export class ServiceProcess {
  stdout = '';
  stderr = '';
  /** The exit code; null when a signal ended the process. */
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  /**
   * @param cwd working directory, where `.env` is read and relative paths start
   * @param options `program`: Node's arguments for another installation; `openFiles`: the limit of open files; `uid` and `gid`: the
   *   user to run as (root only)
   */
  constructor(
    settings: Readonly<Record<string, string>>,
    cwd: string,
    {
      program = BUILD,
      openFiles,
      ...user
    }: { program?: readonly string[]; openFiles?: number; uid?: number; gid?: number } = {},
  ) {
    const limited = ['-c', `ulimit -n ${openFiles}; exec "$@"`, 'sh', process.execPath];
    const [command, before] = openFiles === undefined ? [process.execPath, []] : ['sh', limited];
    this.child = spawn(command, [...before, ...program], {
      ...user,
      cwd,
      env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: '0', ...settings },
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

  /** `http://localhost:<port>`, once the service listens. Waits at most 60 s. */
  async origin(): Promise<string> {
    for (let waited = 0; waited < 60_000; waited += 20) {
      const address = /listens on (http:\/\/localhost:\d+)\/v1\n/.exec(this.stderr)?.[1];
      if (address !== undefined) return address;
      if (!this.isRunning) break;
      await sleep(20);
    }
    throw new Error(`The service does not start:\n${this.stdout}${this.stderr}`);
  }

  /** Sends a signal and waits until the process has ended. */
  async stop(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    return this.ended;
  }

  async kill(): Promise<void> {
    if (this.isRunning) await this.stop('SIGKILL');
  }
}
