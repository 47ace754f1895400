import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import.meta.jest.setTimeout(120_000);

const ROOT = join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const testScripts = Object.keys(scripts).filter((name) => /^test(:|$)/.test(name));

interface Project {
  displayName: string;
  roots: string[];
  testRegex: string | string[];
  testPathIgnorePatterns?: string[];
}

const configuration = (await import(join(ROOT, 'jest.config.js'))) as { default: { projects: Project[] } };
const projects = configuration.default.projects;

const specs = ['src', 'test'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /spec\.[^.]+$/.test(path))
    .map((path) => `${folder}/${path}`),
);

/** The projects that run a file. */
function projectsOf(spec: string): string[] {
  const path = join(ROOT, spec);
  return projects
    .filter(({ roots }) => roots.some((root) => path.startsWith(root.replace('<rootDir>', ROOT))))
    .filter(({ testRegex }) => [testRegex].flat().some((pattern) => new RegExp(pattern).test(path)))
    .filter(
      ({ testPathIgnorePatterns = [] }) => !testPathIgnorePatterns.some((ignored) => new RegExp(ignored).test(path)),
    )
    .map(({ displayName }) => displayName);
}

/** Runs a test script as `npm run <name> -- <args>` does. */
function run(name: string, ...args: string[]): { code: number | null; output: string; listed: string[] } {
  const command = (scripts[name] ?? '').split(' ').slice(1);
  const { status, stdout, stderr } = spawnSync(process.execPath, [...command, ...args], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const listed = stdout.split('\n').filter((line) => line.startsWith(`${ROOT}/`));
  return { code: status, output: stdout + stderr, listed: listed.map((path) => path.slice(ROOT.length + 1)) };
}

describe('every test', () => {
  /** End-to-end tests of what is the same on every engine, or what the embedded engine cannot have. */
  const POSTGRESQL_ONLY = new Set(
    [
      ...[
        'api/connections',
        'api/cors',
        'api/exceptions',
        'api/http-errors',
        'api/openapi',
        'api/routes',
        'api/security',
      ],
      ...['api/unavailable', 'api-keys/keys-commands', 'api-keys/secret-scanning'],
      ...['ordinary-nest/enhancers', 'ordinary-nest/generated-feature', 'ordinary-nest/generated-resource'],
      ...['ordinary-nest/rows', 'ordinary-nest/versions'],
      ...['platform/body-types', 'platform/database-rights', 'platform/input', 'platform/operation-names'],
      ...['platform/own-answers', 'platform/request-body', 'repository/documentation'],
    ].map((name) => `test/${name}.e2e-spec.ts`),
  );
  const EMBEDDED_ONLY = 'test/platform/embedded.e2e-spec.ts';

  function enginesOf(spec: string): string[] {
    if (spec === EMBEDDED_ONLY) return ['embedded'];
    return POSTGRESQL_ONLY.has(spec) ? ['postgresql'] : ['postgresql', 'embedded'];
  }

  test('belongs to one project; an end-to-end test to one of each engine', () => {
    expect(specs.length).toBeGreaterThan(50);
    for (const spec of specs) {
      const found = projectsOf(spec).map((name) => name.replace('-rest', ''));
      const [, kind = ''] = /\.(spec|e2e-spec|fault-spec|browser-spec|tools-spec|ship-spec)\.ts$/.exec(spec) ?? [];
      const expected = {
        spec: ['unit'],
        'e2e-spec': enginesOf(spec),
        'fault-spec': ['faults'],
        'browser-spec': ['browser'],
        'tools-spec': ['openapi-tools'],
        'ship-spec': ['ship'],
      }[kind];
      expect([spec, found]).toEqual([spec, expected]);
    }
  });

  test('is run by a command, and every command by the gate', () => {
    // The others run no project of Jest.
    const selected = testScripts.flatMap(
      (name) => / scripts\/test\.js (\S+)/.exec(scripts[name] ?? '')?.[1]?.split(',') ?? [],
    );
    expect(new Set(selected)).toEqual(new Set(projects.map(({ displayName }) => displayName)));
    const gate = readFileSync(join(ROOT, '.ci/run'), 'utf8').split('\n');
    for (const name of testScripts) {
      const command = name === 'test' ? 'npm test' : `npm run ${name}`;
      expect([name, gate.some((line) => ` ${line}`.endsWith(` ${command}`))]).toEqual([name, true]);
    }
  });

  test('the gate runs npm test with FAST_PATHS=off, too', () => {
    const gate = readFileSync(join(ROOT, '.ci/run'), 'utf8').split('\n');
    expect(gate).toContain('FAST_PATHS=off npm test');
  });

  test.each(testScripts)('has its command in test/README.md: %s', (name) => {
    const command = name === 'test' ? '`npm test`' : `\`npm run ${name}\``;
    expect(readFileSync(join(ROOT, 'test/README.md'), 'utf8')).toContain(`| ${command} `);
  });
});

describe('npm test -- <pattern>', () => {
  test('runs the files that the pattern names, and no others', () => {
    const { code, listed } = run('test', 'api/pets', 'json/int64', '--listTests');
    expect(code).toBe(0);
    expect(listed.sort()).toEqual(['src/platform/json/int64.spec.ts', 'test/api/pets.e2e-spec.ts']);
  });

  test('finds the files, too, that npm test without a pattern leaves out', () => {
    const { code, listed } = run('test', 'keys-commands', '--listTests');
    expect([code, listed]).toEqual([0, ['test/api-keys/keys-commands.e2e-spec.ts']]);
    expect(run('test', '--listTests').listed).not.toContain('test/api-keys/keys-commands.e2e-spec.ts');
  });

  test('does not look at the path of the checkout', () => {
    const { code, listed } = run('test', `${basename(ROOT)}/(src|test)/`, '--listTests');
    expect([code, listed]).toEqual([0, []]);
  });

  test('fails when no file has such a name', () => {
    const { code, output } = run('test', 'no-such-thing');
    expect([code, output]).toEqual([1, expect.stringContaining('No tests found')]);
  });

  test('passes the options of Jest on', () => {
    const { code, output } = run('test', 'docs-pages/html', '-t', 'keeps what is HTML');
    expect([code, output]).toEqual([0, expect.stringMatching(/Tests: +1 skipped, 1 passed, 2 total/)]);
  });
});
