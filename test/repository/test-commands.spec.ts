import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };

interface Project {
  displayName: string;
  roots: string[];
  testRegex: string | string[];
  testPathIgnorePatterns?: string[];
}

const configuration = (await import(join(ROOT, 'jest.config.js'))) as { default: { projects: Project[] } };
const projects = configuration.default.projects;

/** The projects that run a file. */
function projectsOf(spec: string): string[] {
  const path = join(ROOT, spec);
  const matches = (patterns: string | string[]): boolean => [patterns].flat().some((one) => new RegExp(one).test(path));
  return projects
    .filter(({ roots }) => roots.some((root) => path.startsWith(root.replace('<rootDir>', ROOT))))
    .filter(({ testRegex, testPathIgnorePatterns = [] }) => matches(testRegex) && !matches(testPathIgnorePatterns))
    .map(({ displayName }) => displayName);
}

const specs = ['src', 'libs', 'test'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /spec\.[^.]+$/.test(path))
    .map((path) => `${folder}/${path}`),
);

test('every test belongs to one project, or to one for each engine if it is end-to-end', () => {
  const engines = ['any-engine', 'postgresql', 'modules', 'embedded'];
  for (const spec of specs) {
    const found = projectsOf(spec).map((name) => name.replace('-rest', ''));
    const isEndToEnd = spec.endsWith('.e2e-spec.ts');
    expect([spec, found.filter((name) => engines.includes(name) === isEndToEnd)]).toEqual([spec, found]);
    // A file that runs on any engine runs once; otherwise at most once on each.
    expect([spec, new Set(found).size, found.length > 0]).toEqual([spec, found.length, true]);
    if (!isEndToEnd || found.includes('any-engine')) expect([spec, found]).toEqual([spec, [found[0]]]);
  }
});

test('the gate and the nightly run have every project and every test command, and test/README.md names each command', () => {
  const projectsIn = (command = ''): string[] => / scripts\/test\.js (\S+)/.exec(` ${command}`)?.[1]?.split(',') ?? [];
  const lines = ['.ci/run', '.ci/nightly'].flatMap((path) => read(path).split('\n'));
  const run = lines.flatMap((line) => {
    const script = /\bnpm (?:run )?(test(?::\w+)?)(?:'|$)/.exec(line)?.[1];
    return script === undefined ? projectsIn(line) : [script, ...projectsIn(scripts[script])];
  });
  expect(run).toEqual(expect.arrayContaining(projects.map(({ displayName }) => displayName)));
  for (const name of Object.keys(scripts).filter((script) => /^test(:|$)/.test(script))) {
    expect(read('test/README.md')).toContain(`| \`npm ${name === 'test' ? name : `run ${name}`}\` `);
    if (projectsIn(scripts[name]).length === 0) expect(run).toContain(name);
  }
});
