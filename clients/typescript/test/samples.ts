import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const ROOT = join(import.meta.dirname, '../../..');
const PACKAGE = join(ROOT, 'clients/typescript');

/** The code blocks of a language in a document, in their order. */
export async function blocksOf(document: string, language: string): Promise<string[]> {
  const text = await readFile(join(ROOT, document), 'utf8');
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, tag]) => tag === language)
    .map(([, , code = '']) => code);
}

/** A directory where samples run as users run them: with installed packages, and the service on port 3000. */
export class Workshop {
  private constructor(
    readonly directory: string,
    private readonly environment: Record<string, string>,
  ) {}

  /** @param port the port on which the service listens */
  static async open(port: number, apiKey: string): Promise<Workshop> {
    const directory = await mkdtemp(join(tmpdir(), 'petstore-samples-'));
    await mkdir(join(directory, 'node_modules'));
    await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
    await writeFile(join(directory, '.curlrc'), `connect-to = "localhost:3000:127.0.0.1:${port}"\nnoproxy = "*"\n`);
    const redirect = join(directory, 'redirect.mjs');
    await writeFile(redirect, REDIRECT);
    return new Workshop(directory, {
      PATH: process.env['PATH'] ?? '',
      API_KEY: apiKey,
      PORT: String(port),
      NODE_OPTIONS: `--import ${redirect}`,
      // curl reads its .curlrc in this directory; Python's `requests` uses the service as a proxy.
      CURL_HOME: directory,
      http_proxy: `http://127.0.0.1:${port}`,
    });
  }

  /** Installs packages of this repository's node_modules. */
  async install(...packages: string[]): Promise<void> {
    for (const name of packages) {
      const link = join(this.directory, 'node_modules', name);
      await mkdir(join(link, '..'), { recursive: true });
      await symlink(join(ROOT, 'node_modules', name), link);
    }
  }

  /** Installs the package of the client that the build has made, with only its dependencies. Returns its files. */
  async installClient(): Promise<string[]> {
    const target = join(this.directory, 'node_modules/@petstore-service/client');
    await mkdir(target, { recursive: true });
    const command = [
      '--extract',
      '--verbose',
      '--strip-components=1',
      '--show-transformed-names',
      '--directory',
      target,
    ];
    const files = await this.run('tar', ...command, '--file', join(ROOT, 'dist/client.tgz'));
    await this.install(...Object.keys((await manifestOf(PACKAGE)).dependencies));
    return files.trim().split('\n');
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.directory, name), text);
  }

  /** Checks the types of a TypeScript file strictly, and compiles it. */
  async compile(name: string): Promise<void> {
    const options = ['--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom', '--strict'];
    await this.install('@types/node', 'undici-types');
    await this.run(
      process.execPath,
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      ...options,
      '--types',
      'node',
      name,
    );
  }

  /** Runs a command in this directory, and returns its output. Throws an error with the output when the command fails. */
  async run(command: string, ...parameters: string[]): Promise<string> {
    try {
      const options = { cwd: this.directory, env: this.environment };
      return (await promisify(execFile)(command, parameters, options)).stdout;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${command} ${parameters.join(' ')}\n${stdout}${stderr}`, { cause: error });
    }
  }

  close(): Promise<void> {
    return rm(this.directory, { recursive: true });
  }
}

/** Preloaded into the samples' Node processes: requests for port 3000 go to the tested service. */
const REDIRECT = `
const { fetch } = globalThis;
const here = (address) => String(address).replace('http://localhost:3000/', \`http://127.0.0.1:\${process.env.PORT}/\`);
globalThis.fetch = (input, init) =>
  input instanceof Request ? fetch(new Request(here(input.url), input), init) : fetch(here(input), init);
`;

export async function manifestOf(
  directory: string,
): Promise<{ dependencies: Record<string, string>; devDependencies: Record<string, string> }> {
  return JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')) as never;
}
