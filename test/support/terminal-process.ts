import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** The character that Ctrl+C sends. */
export const CTRL_C = '\x03';

/** A program on a pseudo-terminal of 80 columns, which `script` makes. Linux has it in util-linux, macOS its own. */
export class TerminalProcess {
  /** All that the terminal has shown, with its control sequences. */
  text = '';
  /** The exit code of the program. */
  readonly ended: Promise<number | null>;
  private readonly child: ChildProcess;

  /**
   * @param command a line for the shell
   * @param environment the variables beside PATH, HOME, LANG and TMPDIR
   */
  constructor(command: string, cwd: string, environment: Readonly<Record<string, string>>) {
    // No other variables: with `CI`, `TMUX` or `NO_COLOR`, programs choose other colours than on an ordinary terminal.
    const { PATH, HOME, LANG, TMPDIR } = process.env;
    const line = `stty cols 80 rows 24 && exec ${command}`;
    const args = process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', line] : ['-qefc', line, '/dev/null'];
    this.child = spawn('script', args, {
      cwd,
      env: { PATH, HOME, LANG, TMPDIR, TERM: 'xterm-256color', SHELL: '/bin/sh', ...environment },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.text += text));
    this.ended = once(this.child, 'close').then(([code]) => code as number | null);
  }

  /** The text without control sequences, as a reader sees it. */
  get shown(): string {
    // eslint-disable-next-line no-control-regex -- sequences of a terminal
    return this.text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replaceAll('\r', '');
  }

  /** The lines that a terminal of 80 columns would wrap. */
  get longLines(): string[] {
    return this.shown.split('\n').filter((line) => [...line].length > 80);
  }

  /** Waits at most 60 s until the terminal shows something; returns the match. */
  async shows(expected: RegExp): Promise<RegExpExecArray> {
    for (let waited = 0; waited < 60_000; waited += 20) {
      const match = expected.exec(this.shown);
      if (match) return match;
      if (this.child.exitCode !== null) break;
      await sleep(20);
    }
    throw new Error(`The terminal does not show ${String(expected)}:\n${this.shown}`);
  }

  /** Types on the keyboard. */
  type(keys: string): void {
    this.child.stdin?.write(keys);
  }

  /** Closes the terminal as a window does: its programs get SIGHUP, and errors for what they write. */
  hangUp(): void {
    this.child.kill('SIGKILL');
  }

  /** Closes the terminal, which ends its programs. */
  async close(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGTERM');
    await this.ended;
  }
}
