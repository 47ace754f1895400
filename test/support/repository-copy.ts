import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/** Folders that are not copied: their content is installed or built. */
const LEFT_OUT = new Set(['.data', '.git', 'built', 'coverage', 'dist', 'node_modules']);

/** A copy of the repository in which a test may change files. It shares the installed packages. */
export class RepositoryCopy {
  private constructor(readonly path: string) {}

  static async create(): Promise<RepositoryCopy> {
    // TypeScript names files by their real path.
    const path = await realpath(await mkdtemp(join(tmpdir(), 'petstore-copy-')));
    await cp(ROOT, path, { recursive: true, filter: (file) => file === ROOT || !LEFT_OUT.has(basename(file)) });
    await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
    return new RepositoryCopy(path);
  }

  read(file: string): Promise<string> {
    return readFile(join(this.path, file), 'utf8');
  }

  /**
   * Runs a Node script in the copy, and returns its output. The script gets PATH, HOME and TEST_DATABASE_URL of this test
   * run, and the given settings.
   *
   * @param script below the copy, such as `node_modules/eslint/bin/eslint.js`
   * @throws Error with the whole output when the script fails
   */
  async run(
    script: string,
    args: readonly string[] = [],
    settings: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const { PATH, HOME, TEST_DATABASE_URL } = process.env;
    const options = {
      cwd: this.path,
      env: { PATH, HOME, ...(TEST_DATABASE_URL !== undefined && { TEST_DATABASE_URL }), ...settings },
      maxBuffer: 10_000_000,
    };
    return promisify(execFile)(process.execPath, [script, ...args], options).then(
      ({ stdout, stderr }) => stdout + stderr,
      (error: { stdout: string; stderr: string }) => {
        throw new Error(`${[script, ...args].join(' ')} has failed:\n${error.stdout}${error.stderr}`);
      },
    );
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
