import { existsSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { StartupError } from '#runtime';
import { type Environment, type Settings, type SettingsOf, WrongValue } from './setting.js';

/** The names of a product, where a library shows one. */
export interface Product {
  /**
   * The realm of API keys, and the start of metrics, header fields and messages: a letter, then at most 31 letters in lower case,
   * digits and `_`.
   */
  readonly name: string;
  /**
   * How to run a command of the product by npm, such as `npm run orders --`. `defineService` replaces it in a process that npm
   * has not started, as in a container: see `commandHere`.
   */
  readonly command: string;
  /**
   * The start of every API key that the service makes: at most seven letters in lower case and digits, then `_`, because lists of
   * keys show 12 characters of each. Secret scanners search for it, so it never changes.
   */
  readonly apiKeyPrefix: string;
}

/**
 * How to run a command where this process runs: by npx or as the product says if npm has started it, else with the file `cli.js` beside its
 * program, such as `node dist/src/cli.js`. A service, which shows it to strangers, names no file outside its working directory.
 */
export function commandHere({ command }: Product): string {
  const [, program] = process.argv;
  if (process.env['npm_lifecycle_event'] === 'npx' && program !== undefined) return `npx --no ${basename(program)}`;
  if (process.env['npm_lifecycle_event'] !== undefined || program === undefined) return command;
  // The bundle of the service stands in a folder beside that of the commands.
  const file = ['cli.js', '../src/cli.js'].map((path) => join(dirname(program), path)).find(existsSync);
  if (file === undefined) return command;
  const path = relative(process.cwd(), file);
  if (!path.startsWith('..')) return `node ${path}`;
  return program === file ? `node ${file}` : command;
}

/**
 * The settings of one application, which never change: the token by which Nest injects them. The members here are for
 * everybody. A library injects its own settings, too: `@Inject(Config) config: SettingsOf<typeof BODY_SETTINGS>`.
 */
export class Config {
  readonly product: Product;
  /** Base URL of links in responses, without a trailing slash. */
  readonly publicBaseUrl: string;
}

/** Whether NODE_ENV says `production`, as the image does: a check that helps to write modules, but costs time, is left out. */
export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production';
}

/**
 * Reads and validates settings. A value that is empty or only white space counts as not set, or is refused (`neverEmpty`). No
 * other function reads the variables.
 *
 * @throws StartupError that names each wrong setting and what it must be, but not its value, which may be a secret
 */
export function readSettings<S extends Settings>(settings: S, environment: Environment = process.env): SettingsOf<S> {
  const faults: string[] = [];
  const textOf = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const values: Record<string, unknown> = {};
  for (const [member, { name, shown, needs, neverEmpty, read }] of Object.entries(settings)) {
    const text = textOf(name);
    try {
      if (neverEmpty && text === undefined && environment[name] !== undefined)
        throw new WrongValue('set to a value, or not at all: it is empty');
      // Docker's --env-file and Kubernetes keep quotes, and no setting has a value that begins and ends with them.
      if (/^(["'`]).*\1$/.test(text ?? '')) throw new WrongValue('without quotes around it');
      // URLs would be read without them.
      if (/\p{Cc}/u.test(text ?? ''))
        throw new WrongValue('without tabs, line ends (of Windows files, too) and other control characters');
      values[member] = read(text);
      const isChanged = text !== undefined && text !== shown;
      if (needs !== undefined && isChanged && textOf(needs) === undefined) faults.push(`${name} needs ${needs}`);
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error;
      faults.push(`${name} must be ${error.message}`);
    }
  }
  if (faults.length > 0) {
    throw new StartupError(`Wrong settings: ${faults.join('; ')}. .env.example describes every setting.`);
  }
  return values as SettingsOf<S>;
}
