import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartupError } from '#runtime';
import { loadEnvironmentFile } from './environment-file.js';

const KNOWN = ['PORT', 'HOST', 'DATABASE_URL', 'REDIS_URL', 'LOG_LEVEL', 'DATA_DIR'];

const before = process.cwd();
let home: string;
beforeEach(() => process.chdir((home = mkdtempSync(join(tmpdir(), 'petstore-env-')))));
afterEach(() => {
  process.chdir(before);
  rmSync(home, { recursive: true });
});

type Environment = Record<string, string | undefined>;

/** Writes `.env`, and returns what it adds to an empty environment. */
function read(file: string): Environment {
  const environment: Environment = {};
  warningOf(file, environment);
  return environment;
}

function warningOf(file: string, environment: Environment = {}): string | undefined {
  writeFileSync('.env', file);
  return loadEnvironmentFile(KNOWN, environment);
}

test.each([
  ['a byte order mark', '\uFEFFPORT=1\nHOST=2'],
  ['line ends of Windows', 'PORT=1\r\nHOST=2\r\n'],
  ['export, white space and comments', '# a\n\t# b\n \n  export  PORT = 1 \t# c\n\tHOST=2 # "d"\n'],
  ['quotes', `PORT="1"\nHOST='2'`],
  ['quotes and comments', `PORT="1" # it's\nHOST=\`2\`# "`],
])('.env with %s is read', (_, file) => {
  expect(read(file)).toEqual({ PORT: '1', HOST: '2' });
});

test('a value of white space is empty, and takes nothing of the next line', () => {
  expect(read('PORT=  \nHOST=2')).toEqual({ PORT: '', HOST: '2' });
});

test('quotes keep # and span lines, and double ones turn \\n into a line feed', () => {
  const lines = 'A=\nB=a b  c # d\nC="a # b"\nD=\'a\\nb\'\nE="a\\nb"\nF="first\nA=second"\nG=it\'s\nH={"a":1}';
  expect(read(lines)).toEqual({
    ...{ A: '', B: 'a b  c', C: 'a # b', D: 'a\\nb', E: 'a\nb', F: 'first\nA=second', G: `it's`, H: '{"a":1}' },
  });
});

test('the environment wins, also with an empty value', () => {
  const environment = { HOST: 'mine', LOG_LEVEL: '' };
  expect(warningOf('PORT=1\nHOST=2\nLOG_LEVEL=3', environment)).toBeUndefined();
  expect(environment).toEqual({ HOST: 'mine', LOG_LEVEL: '', PORT: '1' });
});

test.each<[string, file: string | Buffer, line: number]>([
  ['UTF-16', Buffer.from('\uFEFFPORT=secret', 'utf16le'), 1],
  ['UTF-16, big-endian', Buffer.from('\uFEFFPORT=secret', 'utf16le').swap16(), 1],
  ['UTF-16 without mark', Buffer.from('PORT=secret\n', 'utf16le'), 1],
  ['zeros, as after a crash', Buffer.alloc(100), 1],
  ['no assignment', '\n# x\nPORT secret', 3],
  ['a colon', 'DATABASE_URL: secret\nPORT=1', 1],
  ['a name alone', 'PORT=1\n\n"a\nb"\nsecret', 3],
  ['no name', '=secret', 1],
  ['a name with blanks', 'set PORT=secret', 1],
  ['an open quote', 'HOST=1\nPORT="secret\nLOG_LEVEL=2', 2],
  ['text after a quote', `PORT='secret'x`, 1],
  ['a wrong line below a value of two lines', 'A="x\ny"\nsecret', 3],
])('.env with %s is refused in a line that shows no value', (_, file, line) => {
  const environment = { NAME: 'x' };
  writeFileSync('.env', file);
  const load = (): unknown => loadEnvironmentFile(KNOWN, environment);
  expect(load).toThrow(StartupError);
  expect(load).toThrow(`.env cannot be read: line ${line} is no assignment. Write NAME=value in UTF-8, `);
  expect(load).not.toThrow(/s.?e.?cret|\n/);
  expect(environment).toEqual({ NAME: 'x' });
});

test('a folder .env is refused, as no file is not', () => {
  const load = (): unknown => loadEnvironmentFile(KNOWN, {});
  expect(load()).toBeUndefined();
  mkdirSync('.env');
  expect(load).toThrow(StartupError);
  expect(load).toThrow(/^\.env cannot be read: EISDIR.+\. Make it a readable file, or remove it\.$/);
});

test('unknown names of .env are one warning, with the nearest known name and without values', () => {
  const file =
    'DATABASE_ULR=secret\nORDERS_URL=secret\ndatabase_url=secret\nLOG_LEVLE=x\nHOSTS=x\nPORT=1\nOTEL_SERVICE_NAME=x\nREDIS_PASSWORD=x\nPOSTGRES_PASSWORD=x';
  expect(warningOf(file)).toBe(
    '.env sets what is no setting of the service: DATABASE_ULR (did you mean DATABASE_URL?), ORDERS_URL, ' +
      'database_url (did you mean DATABASE_URL?), LOG_LEVLE (did you mean LOG_LEVEL?), HOSTS (did you mean HOST?).',
  );
});

test('a call without names only loads the values, and a later one tells the same as a first one', () => {
  writeFileSync('.env', 'DATABASE_ULR=secret\nPORT=1');
  const environment: Environment = { LOG_LEVLE: 'secret' };
  expect(loadEnvironmentFile(undefined, environment)).toBeUndefined();
  expect(environment).toEqual({ LOG_LEVLE: 'secret', DATABASE_ULR: 'secret', PORT: '1' });
  expect(loadEnvironmentFile(KNOWN, environment)).toBe(
    '.env sets what is no setting of the service: DATABASE_ULR (did you mean DATABASE_URL?); ' +
      'the environment sets what is no setting of the service: LOG_LEVLE (did you mean LOG_LEVEL?).',
  );
});

test('a name of the environment is told only if it is a slip of a setting that is not set', () => {
  rmSync('.env', { force: true });
  const told = (...names: string[]): string | undefined =>
    loadEnvironmentFile(KNOWN, Object.fromEntries(names.map((name) => [name, 'secret'])));
  for (const name of 'DATABASE_ULR DATABSE_URL DATABASE_URL_ DATABASE__URL DATABASE_URI Database_Url'.split(' ')) {
    expect(told(name)).toBe(
      `the environment sets what is no setting of the service: ${name} (did you mean DATABASE_URL?).`,
    );
  }
  expect(told('FAST_PATHS')).toBe('the environment sets what is no setting of the service: FAST_PATHS.');
  expect(told('\uFEFFDATABASE_URL')).toContain(' \\ufeffDATABASE_URL (did you mean DATABASE_URL?).');
  const others =
    'HOME HOSTNAME PATH POST PWD PORTS TZ LANG TERM SHELL USER npm_config_port PETSTORE_PORT PETSTORE_SERVICE_HOST DATABASE_PORT ' +
    'DATABASE_HOST DATABASE_PORT_5432_TCP_ADDR REDIS_PORT REDIS_SSL REDIS_TLS REDIS_HOST PGDATA PGHOST NODE_ENV OTEL_LOG_LEVEL ' +
    'XDG_DATA_DIRS';
  expect(told(...others.split(' '))).toBeUndefined();
  expect(told('DATABASE_URI', 'DATABASE_URL')).toBeUndefined();
});
