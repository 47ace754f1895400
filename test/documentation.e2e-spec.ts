import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestApp, type TestApp } from './support/app.js';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const DOCUMENTS = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];

/** The titles of the tests and of their groups in a file. */
function titlesOf(source: string): string[] {
  const titles = source.matchAll(/\(\s*(['"`])((?:\\.|(?!\1).)*)\1,\s*(?:async\s*)?(?:\(|\w+\s*=>)/g);
  return [...titles].map((match) => (match[2] ?? '').replaceAll("\\'", "'"));
}

describe('docs/decisions.md', () => {
  const rows = read('docs/decisions.md')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| gap ') && !/^\| -+ /.test(line))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));

  test('every row has five columns and names a test', () => {
    expect(rows.length).toBeGreaterThan(40);
    for (const row of rows) {
      expect([row[1], row.length]).toEqual([row[1], 7]);
      expect([row[1], row[5]]).not.toEqual([row[1], '']);
    }
  });

  test.each(rows.map((row) => [row[1], row[5]] as [string, string]))('the tests of %s exist', (_, tests) => {
    for (const reference of tests.split('; ')) {
      const [, file = '', words = ''] = /^([\w/-]+): (.+)$/.exec(reference) ?? [];
      const path = file.startsWith('src/') ? `${file}.spec.ts` : `test/${file}.e2e-spec.ts`;
      expect([reference, existsSync(join(ROOT, path))]).toEqual([reference, true]);
      const isTitle = titlesOf(read(path)).some((title) => title.includes(words));
      expect([reference, isTitle]).toEqual([reference, true]);
    }
  });
});

describe.each(DOCUMENTS)('%s', (document) => {
  test('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...read(document).matchAll(/npm (?:--silent )?run ([\w:.-]+)/g)].map((match) => match[1] ?? '');
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  test('links only to files that exist', () => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)#]+)/g)].map((match) => match[1] ?? '');
    const directory = document.startsWith('docs/') ? 'docs' : '.';
    expect(links.filter((link) => !existsSync(join(ROOT, directory, link)))).toEqual([]);
  });
});

describe('docs/extending.md', () => {
  const blocks = [...read('docs/extending.md').matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]);

  test.each(readdirSync(join(ROOT, 'test/example/visits')))('shows %s as the tests run it', (file) => {
    const code = read(`test/example/visits/${file}`).replaceAll(`'../../../src/platform/`, `'../platform/`);
    expect(blocks).toContain(code);
  });
});

describe("README's first call", () => {
  let app: TestApp;
  let home: string;
  beforeAll(async () => {
    app = await createTestApp();
    home = await mkdtemp(join(tmpdir(), 'petstore-readme-'));
    // The commands run as they are written; curl alone knows that port 3000 is another one here.
    await writeFile(join(home, '.curlrc'), `connect-to = "localhost:3000:127.0.0.1:${app.port}"\nsilent\n`);
  });
  afterAll(async () => {
    await app.close();
    await rm(home, { recursive: true });
  });

  /** The commands with curl in a section. */
  function commandsOf(title: string): string[] {
    const section = read('README.md').split(`## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
    return [...section.matchAll(/```sh\n(.*?)```/gs)]
      .map((match) => match[1] ?? '')
      .filter((text) => text.includes('curl'));
  }

  async function run(command: string): Promise<string> {
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, CURL_HOME: home, API_KEY: app.apiKey };
    return (await promisify(execFile)('bash', ['-ec', command], { env })).stdout;
  }

  test('its curl lines do what it says, as written', async () => {
    const commands = commandsOf('First call');
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

  test('its command of safe retries adds one animal, however often it is run', async () => {
    const [command = '', ...others] = commandsOf('Safe retries');
    expect(others).toEqual([]);
    const [first, second] = [await run(command), await run(command)];
    expect(first).toMatch(/^HTTP\/1\.1 201 Created\r\n/);
    expect(first).not.toMatch(/Idempotent-Replayed/i);
    expect(second).toMatch(/^HTTP\/1\.1 201 Created\r\n[^]*Idempotent-Replayed: true\r\n/);
    expect(second.split('\r\n\r\n')[1]).toBe(first.split('\r\n\r\n')[1]);
  });
});
