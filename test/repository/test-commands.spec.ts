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
    // Jest sets FORCE_COLOR in its workers when it runs in a terminal.
    env: { ...process.env, FORCE_COLOR: '0' },
  });
  const listed = stdout.split('\n').filter((line) => line.startsWith(`${ROOT}/`));
  return { code: status, output: stdout + stderr, listed: listed.map((path) => path.slice(ROOT.length + 1)) };
}

describe('every test', () => {
  const endToEnd = (...names: string[]): Set<string> => new Set(names.map((name) => `test/${name}.e2e-spec.ts`));
  /** Tests of HTTP, input, documents and log, whose results are the same on every engine and version of PostgreSQL. */
  const ANY_ENGINE = endToEnd(
    ...['api/connections', 'api/cors', 'api/error-examples', 'api/exceptions', 'api/http-errors', 'api/openapi'],
    ...['api/routes', 'api-keys/secret-scanning', 'operation/shutdown'],
    ...['ordinary-nest/enhancers', 'ordinary-nest/rows'],
    ...['platform/body-types', 'platform/event-streams', 'platform/extending', 'platform/input'],
    ...['platform/operation-names', 'platform/other-transports', 'platform/own-answers', 'platform/properties'],
    ...['platform/request-body', 'platform/request-in-log', 'repository/documentation'],
  );
  /** Tests that the embedded engine cannot run, or that take long and have the same result there. */
  const POSTGRESQL_ONLY = endToEnd(
    ...['api/unavailable', 'api-keys/keys-commands', 'platform/database-rights'],
    ...['ordinary-nest/generated-feature', 'ordinary-nest/generated-resource'],
    ...['operation/metrics', 'operation/observability-aborted', 'operation/tracing'],
    ...['platform/readiness-checks'],
  );
  const EMBEDDED_ONLY = endToEnd('platform/embedded');

  function projectsOfEndToEnd(spec: string): string[] {
    if (ANY_ENGINE.has(spec)) return ['any-engine'];
    if (EMBEDDED_ONLY.has(spec)) return ['embedded'];
    return POSTGRESQL_ONLY.has(spec) ? ['postgresql'] : ['postgresql', 'embedded'];
  }

  test('belongs to one project, or to one for each engine if it is end-to-end', () => {
    expect(specs.length).toBeGreaterThan(50);
    for (const spec of specs) {
      const found = projectsOf(spec).map((name) => name.replace('-rest', ''));
      const [, kind = ''] =
        /\.(spec|e2e-spec|fault-spec|operation-spec|browser-spec|tools-spec|ship-spec)\.ts$/.exec(spec) ?? [];
      const expected = {
        spec: ['unit'],
        'e2e-spec': projectsOfEndToEnd(spec),
        'fault-spec': ['faults'],
        'operation-spec': ['operation'],
        'browser-spec': ['browser'],
        'tools-spec': ['openapi-tools'],
        'ship-spec': ['ship'],
      }[kind];
      expect([spec, found]).toEqual([spec, expected]);
    }
  });

  const everyProject = projects.map(({ displayName }) => displayName);
  /** The projects that an npm script runs; none if it does not run Jest. */
  const projectsOfScript = (name: string): string[] =>
    / scripts\/test\.js (\S+)/.exec(scripts[name] ?? '')?.[1]?.split(',') ?? [];

  /** The lines of the gate that run tests: the prefix of the command, such as `FAST_PATHS=off`, and the projects. */
  const gate = readFileSync(join(ROOT, '.ci/run'), 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, before = '', script, direct] =
        /^((?:\S+ )*?)(?:npm (test|run test:\S+)|node scripts\/test\.js (\S+))$/.exec(line) ?? [];
      const name = script?.replace('run ', '');
      if (name !== undefined) return [{ before: before.trim(), name, projects: projectsOfScript(name) }];
      return direct === undefined ? [] : [{ before: before.trim(), name: '', projects: direct.split(',') }];
    });
  /** The projects that the gate runs with this prefix of the command. */
  const projectsAtGate = (...before: string[]): string[] =>
    gate.filter((line) => before.includes(line.before)).flatMap((line) => line.projects);

  test('is run by a command', () => {
    expect(new Set(testScripts.flatMap(projectsOfScript))).toEqual(new Set(everyProject));
  });

  const FUZZ = 'FUZZ_REQUESTS=20000';
  const POSTGRESQL_15 = `${FUZZ} .ci/postgresql-15`;

  test('is run by the gate, as is every test command without Jest', () => {
    const run = gate.flatMap((line) => line.projects);
    expect(everyProject.filter((project) => !run.includes(project))).toEqual([]);
    const others = testScripts.filter((name) => projectsOfScript(name).length === 0);
    expect(others.filter((name) => !gate.some((line) => line.name === name))).toEqual([]);
  });

  test('with SQL is run by the gate on PostgreSQL 15, PostgreSQL 18 and the embedded engine', () => {
    expect(projectsAtGate(POSTGRESQL_15)).toEqual(['postgresql', 'postgresql-rest']);
    expect(projectsAtGate('')).toEqual(expect.arrayContaining(['any-engine', 'postgresql', 'embedded']));
    expect(projectsAtGate(FUZZ)).toContain('embedded-rest');
  });

  test('that calls the service is also run by the gate without fast paths', () => {
    expect(projectsAtGate('FAST_PATHS=off')).toEqual(['any-engine', 'postgresql', 'embedded']);
  });

  test.each(testScripts)('has its command in test/README.md: %s', (name) => {
    const command = name === 'test' ? '`npm test`' : `\`npm run ${name}\``;
    expect(readFileSync(join(ROOT, 'test/README.md'), 'utf8')).toContain(`| ${command} `);
  });
});

describe('npm test -- <pattern>', () => {
  test('runs exactly the files that match the pattern', () => {
    const { code, listed } = run('test', 'api/pets', 'json/int64', '--listTests');
    expect(code).toBe(0);
    expect(listed.sort()).toEqual(['src/platform/json/int64.spec.ts', 'test/api/pets.e2e-spec.ts']);
  });

  test('also finds files that npm test without a pattern leaves out', () => {
    const { code, listed } = run('test', 'keys-commands', '--listTests');
    expect([code, listed]).toEqual([0, ['test/api-keys/keys-commands.e2e-spec.ts']]);
    expect(run('test', '--listTests').listed).not.toContain('test/api-keys/keys-commands.e2e-spec.ts');
  });

  test('does not compare the pattern with the path of the checkout', () => {
    const { code, listed } = run('test', `${basename(ROOT)}/(src|test)/`, '--listTests');
    expect([code, listed]).toEqual([0, []]);
  });

  test('fails when no file matches', () => {
    const { code, output } = run('test', 'no-such-thing');
    expect([code, output]).toEqual([1, expect.stringContaining('No tests found')]);
  });

  test('passes options on to Jest', () => {
    const { code, output } = run('test', 'docs-pages/html', '-t', 'keeps values that are HTML');
    expect([code, output]).toEqual([0, expect.stringMatching(/Tests: +1 skipped, 1 passed, 2 total/)]);
  });
});
