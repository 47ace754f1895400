import { execFile } from 'node:child_process';
import { join } from 'node:path';

const CLI = join(import.meta.dirname, '../../../dist/src/cli.js');

/** Longest time in ms of a command: many times what an idle machine needs. */
const TIMEOUT_MS = 100_000;

/** The output of a command, and its exit code. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the built `petstore` command.
 *
 * @param cwd working directory, where `.env` is read and relative paths start
 * @param settings its environment; only PATH is added
 * @throws Error when it prints a stack, which no command may do, or when a signal or the time limit ends it
 */
export function petstoreCommand(
  cwd: string,
  settings: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<Outcome> {
  return run(process.execPath, [CLI, ...args], cwd, settings);
}

/**
 * As `petstoreCommand`, of a line of bash, such as `petstore keys list | head -1`. The exit code is that of the first command
 * of a pipe that fails.
 */
export function petstoreLine(cwd: string, settings: Readonly<Record<string, string>>, line: string): Promise<Outcome> {
  const script = `set -o pipefail; petstore() { '${process.execPath}' '${CLI}' "$@"; }; ${line}`;
  return run('bash', ['--norc', '-c', script], cwd, settings);
}

function run(
  program: string,
  args: readonly string[],
  cwd: string,
  settings: Readonly<Record<string, string>>,
): Promise<Outcome> {
  const options = { cwd, env: { PATH: process.env.PATH, ...settings }, timeout: TIMEOUT_MS, maxBuffer: 1e9 };
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      const code = error ? error.code : 0;
      if (typeof code !== 'number' || /^ +at /m.test(stdout + stderr)) {
        reject(new Error(`${args.join(' ')}: ${error?.signal ?? ''}\n${stdout}${stderr}`));
      } else resolve({ code, stdout, stderr });
    });
    // A command that reads nothing closes its end.
    child.stdin?.on('error', () => undefined).end();
  });
}
