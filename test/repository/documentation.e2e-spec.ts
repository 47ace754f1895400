import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { CommandContext } from '../../libs/definition/src/definition.js';
import { createProgram } from '../../libs/commands/src/program.js';
import { PET_STORE } from '../../src/app.description.js';
import { createTestApp, type TestApp } from '../support/app.js';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
/** The files below a folder with this ending, as paths from the root. */
function filesBelow(directory: string, ending: string): string[] {
  const names = readdirSync(join(ROOT, directory), { recursive: true }) as string[];
  return names.filter((name) => name.endsWith(ending)).map((name) => join(directory, name));
}

/** The pages of the repository. */
const DOCUMENTS = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...['docs', 'ops', 'bench', 'test', 'libs', 'migrations'].flatMap((directory) => filesBelow(directory, '.md')),
];

/** Pages that also name files of examples or of earlier releases. */
const NAMING_OTHER_FILES = ['docs/extending.md', 'CHANGELOG.md'];

/** The other files that operators read or change. */
const CONFIGURATION = [
  ...['Dockerfile', 'compose.yaml', '.env.example'],
  ...['yaml', 'yml', 'cfg', 'env'].flatMap((ending) => filesBelow('ops', `.${ending}`)),
];

/** Names there that are no settings: a misspelling, and variables of Node.js, Docker, npm and the images of others. */
const NO_SETTINGS = /^(DATABASE_ULR|(NODE|NPM|POSTGRES)_\w+|REDIS_PASSWORD|REDISCLI_AUTH)$/;

/** The names of settings in a text that do not exist. */
function unknownSettings(names: readonly string[]): string[] {
  const known = read('.env.example');
  return names.filter((name) => !known.includes(`#${name}=`) && !NO_SETTINGS.test(name));
}

/** The commands in a text, such as `npm run petstore -- keys list` or `[dist/src/cli.js, migrate]`, that do not exist. */
function unknownCommands(text: string): string[] {
  const program = createProgram({ application: PET_STORE } as Partial<CommandContext> as CommandContext);
  const named = text.matchAll(/(?:npm run petstore --|cli\.js)[ ,'"]+([a-z][\w:]*)(?:[ ,'"]+([a-z][\w:]*))?/g);
  return [...named].flatMap(([found, word, next]) => {
    const command = program.commands.find((each) => each.name() === word);
    const isKnown = next === undefined || command?.commands.length === 0;
    return command !== undefined && (isKnown || command.commands.some((each) => each.name() === next)) ? [] : found;
  });
}

/** The path of the test file that `name` refers to: `api/pets`, `faults/security` or `libs/json/src/json-reader`. */
function specOf(name: string): string {
  const base = /^(src|libs|clients)\//.test(name) ? name : `test/${name}`;
  const endings = ['e2e-spec', 'fault-spec', 'operation-spec', 'browser-spec', 'ship-spec', 'spec'];
  const paths = endings.map((ending) => `${base}.${ending}.ts`);
  return paths.find((path) => existsSync(join(ROOT, path))) ?? base;
}

/**
 * The entries of a page: list items that begin with `**D1 Title.**` and end with the files of their tests, `(`api/pets`)`. A line
 * may break anywhere.
 */
function entriesOf(document: string): { id: string; files: string[] }[] {
  const items = read(document).matchAll(/^- \*\*([A-Z]\d+) .+?\.\*\*(.*?)(?=\n\n|\n- |(?![^]))/gms);
  return [...items].map(([, id = '', text = '']) => ({
    id,
    files: [...(/\(([^()]*)\)\s*$/.exec(text)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''),
  }));
}

test.each(['docs/decisions.md', 'docs/security.md'])(
  'every entry of %s names files with tests, which exist',
  (page) => {
    const entries = entriesOf(page);
    expect(entries.length).toBeGreaterThan(20);
    const missing = entries.flatMap(({ id, files }) =>
      files.length === 0
        ? [`${id} names none`]
        : files.flatMap((file) => (existsSync(join(ROOT, specOf(file))) ? [] : `${id} ${file}`)),
    );
    expect(missing).toEqual([]);
  },
);

test('of the packages of a production install and of tracing only two have install scripts, which allowScripts forbids', () => {
  type Entry = { link?: boolean; dev?: boolean; hasInstallScript?: boolean };
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Entry> };
  const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> };
  const withScripts = Object.entries(packages)
    .filter(([path, { link, hasInstallScript }]) => path && !link && hasInstallScript)
    .map(([path, { dev }]) => ({ name: path.replace(/.*node_modules\//, ''), dev: dev === true }));
  const ofProduction = withScripts.filter(({ dev }) => !dev).map(({ name }) => name);
  expect(ofProduction).toEqual(['@scarf/scarf', 'protobufjs']);
  expect(ofProduction.filter((name) => allowScripts[name] !== false)).toEqual([]);
  // The lockfile marks what tracing alone needs as of development.
  expect(withScripts.filter(({ name }) => !(name in allowScripts))).toEqual([]);
});

/** The anchors of a page's headings, as repository hosts make them. */
function anchorsOf(document: string): string[] {
  return [...read(document).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe.each(DOCUMENTS)('%s', (document) => {
  const text = read(document);

  test('names only npm scripts, programs and projects of tests that exist', () => {
    const scriptsOf = (path: string): object => (JSON.parse(read(path)) as { scripts: object }).scripts;
    const scripts = { ...scriptsOf('package.json'), ...scriptsOf('examples/orders/package.json') };
    const commands = text.matchAll(/npm (?:--silent )?(?:run (?:--silent )?([\w:.-]+)|(test|start)\b)/g);
    const named = [...commands].map(([, script, lifeCycle]) => script ?? lifeCycle ?? '');
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    if (document === 'CHANGELOG.md') return;
    const programs = [...text.matchAll(/node ((?:scripts|clients)\/[\w./-]+)/g)].map(([, path = '']) => path);
    expect(programs.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    const projects = [...text.matchAll(/scripts\/test\.js ([\w,-]+)/g)].flatMap(([, list = '']) => list.split(','));
    expect(projects.filter((name) => !read('jest.config.js').includes(`'${name}'`))).toEqual([]);
  });

  test('names only settings that exist, if operators read it', () => {
    if (!/^(README|SECURITY|docs\/(operating|backup|security)|libs\/.*|ops\/.*)\.md$/.test(document)) return;
    const names = [...text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, name = '']) => name);
    expect(unknownSettings(names)).toEqual([]);
  });

  test('names only commands that exist', () => {
    if (NAMING_OTHER_FILES.includes(document)) return;
    expect(unknownCommands(text)).toEqual([]);
  });

  test('links only to files and headings that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)];
    const broken = links.filter(([, path = '', anchor]) => {
      const target = path === '' ? document : join(dirname(document), path);
      return !existsSync(join(ROOT, target)) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  test('names only files and folders that exist', () => {
    if (NAMING_OTHER_FILES.includes(document)) return;
    const paths = [...text.matchAll(/`((?:\.\.?|src|libs|platform|migrations|docs|ops|bench|scripts)\/[\w./-]+)`/g)];
    const missing = paths.filter(([, path = '']) => {
      const targets = [path, join('src', path), join(dirname(document), path)];
      // A name without an ending may name a test file, as in test/README.md.
      return !targets.some((target) => existsSync(join(ROOT, target))) && !existsSync(join(ROOT, specOf(path)));
    });
    expect(missing.map(([name]) => name)).toEqual([]);
  });
});

test.each(CONFIGURATION)('%s names only settings, commands, npm scripts, pages and folders that exist', (file) => {
  const text = read(file);
  expect(unknownSettings(text.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g) ?? [])).toEqual([]);
  expect(unknownCommands(text)).toEqual([]);
  const { scripts } = JSON.parse(read('package.json')) as { scripts: object };
  expect([...text.matchAll(/npm run ([\w:]*\w)/g)].filter(([, name = '']) => !(name in scripts))).toEqual([]);
  const paths = text.match(/(?<![\w./])(?:docs|ops|scripts|src|libs)\/[\w./-]*\w/g) ?? [];
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

describe('docs/extending.md', () => {
  const { featureOf, withNames } = createRequire(import.meta.url)(join(ROOT, 'schematics/feature/names.cjs')) as {
    readonly featureOf: (plural: string) => object;
    readonly withNames: (text: string, feature: object) => string;
  };
  const samples = [...read('docs/extending.md').matchAll(/```ts\n(.*?)```/gs)].map(([, sample = '']) => sample);
  /**
   * What the tests run: the generated feature of the page, a module, the samples themselves, and a separate project. The samples
   * have names with `test_` there, so that a feature `toys` may stand beside them.
   */
  const tested = [
    ...filesBelow('schematics/feature/files', '.ts').map((file) => withNames(read(file), featureOf('toys'))),
    ...[...filesBelow('test/example', '.ts'), ...filesBelow('examples/orders/src', '.ts')].map(read),
    read('examples/orders/test/orders.test.ts'),
    read('test/support/other-starts.ts'),
    ...['recipes', 'added', 'callers', 'other-transports', 'transactions'].map((name) =>
      read(`test/platform/${name}.e2e-spec.ts`).replaceAll('test_', ''),
    ),
  ].map(withoutSpace);
  /** These need packages that are not installed here, or a partner. `ordinary-nest/generated` adds the price. */
  const untested = /@Cron|AbortSignal|PARTNER_URL|price_cents/;

  test.each(samples.filter((sample) => !untested.test(sample)))('shows code that a test runs: %s', (sample) => {
    const parts = sample.split(/^\/\/ .*\n|\n\n| \/\/ .*$/m).map(withoutSpace);
    expect(parts.filter((part) => !tested.some((text) => text.includes(part)))).toEqual([]);
  });
});

/** Also without the comma that the formatter puts behind the last of several lines. */
function withoutSpace(text: string): string {
  return text.replaceAll(/\s/g, '').replaceAll(/,(?=[)}\]]|$)/g, '');
}

describe('the curl lines of README.md and docs/guide.md', () => {
  let app: TestApp;
  let home: string;
  beforeAll(async () => {
    app = await createTestApp();
    home = await mkdtemp(join(tmpdir(), 'petstore-readme-'));
    // The commands run unchanged: this file makes curl connect to the port of this test instead of 3000.
    await writeFile(join(home, '.curlrc'), `connect-to = "localhost:3000:127.0.0.1:${app.port}"\nsilent\n`);
  });
  afterAll(async () => {
    await app.close();
    await rm(home, { recursive: true });
  });

  /** The commands with curl in a section of a document. */
  function commandsOf(document: string, title: string): string[] {
    const section = read(document).split(`## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
    return [...section.matchAll(/```sh\n(.*?)```/gs)]
      .map((match) => match[1] ?? '')
      .filter((text) => text.includes('curl'));
  }

  async function run(command: string): Promise<string> {
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, CURL_HOME: home, API_KEY: app.apiKey };
    return (await promisify(execFile)('bash', ['-ec', command], { env })).stdout;
  }

  test('has curl lines that work unchanged and give the promised responses', async () => {
    const commands = commandsOf('README.md', 'First call');
    expect(commands).toHaveLength(3);
    const answers: string[] = [];
    for (const command of commands) answers.push(await run(command));
    const [created, list, one] = answers;
    expect(created).toMatch(
      /^HTTP\/1\.1 201 Created\r\n[^]*\{"id":1,"name":"Rex","categoryId":7,"status":"available"\}$/,
    );
    expect(list).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\[\{"id":1,"name":"Rex","categoryId":7,"status":"available"\}\]$/);
    expect(one).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Deprecation: [^]*Sunset: [^]*\{"id":1,/);
  });

  test('has a command for safe retries that adds one pet, however often it runs', async () => {
    const [command = '', ...others] = commandsOf('docs/guide.md', 'Safe retries');
    expect(others).toEqual([]);
    const [first, second] = [await run(command), await run(command)];
    expect(first).toMatch(/^HTTP\/1\.1 201 Created\r\n/);
    expect(first).not.toMatch(/Idempotent-Replayed/i);
    expect(second).toMatch(/^HTTP\/1\.1 201 Created\r\n[^]*Idempotent-Replayed: true\r\n/);
    expect(second.split('\r\n\r\n')[1]).toBe(first.split('\r\n\r\n')[1]);
  });
});

test('docs/guide.md has the limits of openapi.json and the defaults of the settings', () => {
  const defaultOf = (setting: string): string =>
    new RegExp(`^#${setting}=(.*)$`, 'm').exec(read('.env.example'))?.[1] ?? `no ${setting}`;
  const { paths } = JSON.parse(read('openapi.json'));
  const limit = paths['/pets'].get.parameters[0].schema;
  const key = paths['/pets'].post.parameters[0].description;
  const sunset = new Date(String(paths['/pets/{petId}'].get['x-sunset']));
  const sentences = [
    `Each client may send ${defaultOf('RATE_LIMIT_PER_MINUTE')} requests a minute,`,
    `A body may have at most ${Number(defaultOf('MAX_BODY_BYTES')) / 1024} KiB, and a page ${limit['maximum']} pets;`,
    `Keys are kept for ${/kept for (\d+ hours)/.exec(String(key))?.[1] ?? ''}.`,
    `That costs one request for each ${limit['maximum']} pets before it.`,
    `getPet is removed on ${sunset.toLocaleDateString('en-GB', { dateStyle: 'long', timeZone: 'UTC' })}.`,
  ];
  const guide = read('docs/guide.md').replaceAll(/\s+/g, ' ');
  expect(sentences.filter((sentence) => !guide.includes(sentence))).toEqual([]);
});
