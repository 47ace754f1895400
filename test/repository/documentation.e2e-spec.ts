import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestApp, type TestApp } from '../support/app.js';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const DOCUMENTS = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];

/** The titles of the tests and of their groups in a file. */
function titlesOf(source: string): string[] {
  const titles = source.matchAll(/\(\s*(['"`])((?:\\.|(?!\1).)*)\1,\s*(?:async\s*)?(?:\(|\w+\s*=>)/g);
  return [...titles].map((match) => (match[2] ?? '').replaceAll("\\'", "'"));
}

/** The file that a reference such as `pets`, `faults/security` or `src/platform/json/json-reader` means. */
function specOf(name: string): string {
  if (name.startsWith('src/')) return `${name}.spec.ts`;
  return name.startsWith('faults/') ? `test/${name}.fault-spec.ts` : `test/${name}.e2e-spec.ts`;
}

/** Fails unless each of the tests that a cell names exists. */
function expectTestsExist(cell: string): void {
  for (const reference of cell.split('; ')) {
    const [, file = '', words = ''] = /^([\w/.-]+): (.+)$/.exec(reference) ?? [];
    const path = specOf(file);
    expect([reference, existsSync(join(ROOT, path))]).toEqual([reference, true]);
    const isTitle = titlesOf(read(path)).some((title) => title.includes(words));
    expect([reference, isTitle]).toEqual([reference, true]);
  }
}

/** The rows of all tables of a document whose last column is headed `test`, as cells. */
function testedRows(document: string): string[][] {
  const rows: string[][] = [];
  let isTested = false;
  let isHeading = true;
  for (const line of read(document).split('\n')) {
    const cells = line.startsWith('|') ? line.split(/(?<!\\)\|/).map((cell) => cell.trim()) : undefined;
    if (cells === undefined) {
      isHeading = true;
    } else if (isHeading) {
      isTested = cells.at(-2) === 'test';
      isHeading = false;
    } else if (isTested && !/^-+$/.test(cells[1] ?? '')) {
      rows.push(cells.slice(1, -1));
    }
  }
  return rows;
}

describe('docs/decisions.md', () => {
  const rows = testedRows('docs/decisions.md');

  test('every row has five columns and names a test', () => {
    expect(rows.length).toBeGreaterThan(40);
    for (const row of rows) expect([row[0], row.length, row[4]]).toEqual([row[0], 5, expect.stringMatching(/./)]);
  });

  test.each(rows.map((row) => [row[0], row[4]] as [string, string]))('the tests of %s exist', (_, tests) =>
    expectTestsExist(tests),
  );
});

describe('docs/security.md', () => {
  const rows = testedRows('docs/security.md');

  test('goes through the ten risks of OWASP, in their order', () => {
    const risks = rows.map(([risk]) => /^API\d+ /.exec(risk ?? '')?.[0]).filter((risk) => risk !== undefined);
    expect(risks).toEqual(Array.from({ length: 10 }, (_, index) => `API${index + 1} `));
    expect(rows.length).toBeGreaterThan(40);
  });

  test.each(rows.map((row) => [row[0], row.at(-1)] as [string, string]))('the tests of %s exist', (_, tests) =>
    expectTestsExist(tests),
  );

  test('the settings it names exist, and the constants are where it says', () => {
    const text = read('docs/security.md');
    const settings = [...text.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map((match) => match[1] ?? '');
    expect(settings.length).toBeGreaterThan(10);
    expect(settings.filter((name) => !read('.env.example').includes(`#${name}=`))).toEqual([]);
    const files = [...text.matchAll(/`(src\/[\w/.-]+\.ts)`/g)].map((match) => match[1] ?? '');
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  test('lists every package that production installs by name, and no other', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const table = read('docs/security.md').split('| package |')[1]?.split('\n\n')[0] ?? '';
    const listed = table.split('\n').flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)]);
    expect(listed.map((match) => match[1]).sort()).toEqual(Object.keys(dependencies).sort());
  });

  test('counts the packages of the lock file, and those with an install script', () => {
    type Entry = { dev?: boolean; devOptional?: boolean; hasInstallScript?: boolean };
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Entry> };
    const installed = Object.entries(packages).filter(([path, { dev, devOptional }]) => path && !dev && !devOptional);
    expect(read('docs/security.md')).toContain(`\n${installed.length} packages, all of them`);
    const withScripts = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
    expect(withScripts).toEqual(['node_modules/@scarf/scarf']);
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
