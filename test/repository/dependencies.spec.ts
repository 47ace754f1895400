import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { untestedDependencies } from '#runtime';
import { TESTED_RELEASES } from '../../libs/runtime/src/tested-releases.js';

const ROOT = join(import.meta.dirname, '../..');

const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');

test('the table of docs/dependencies.md is that of the code', () => {
  const rows = [...page.matchAll(/^\| `(\S+)` +\| ([\d., ]+?) +\|/gm)].map(([, name, releases]) => [
    name,
    releases?.split(', '),
  ]);
  expect(Object.fromEntries(rows)).toEqual(TESTED_RELEASES);
});

test('the page names each file that touches what is not documented, and no other', () => {
  const files = readdirSync(join(ROOT, 'libs'), { recursive: true, encoding: 'utf8' });
  const internals = files.filter((file) => file.endsWith('.internals.ts')).map((file) => `libs/${file}`);
  const named = [...page.matchAll(/libs\/[\w/.-]+\.internals\.ts/g)].map(([name]) => name);
  expect([...new Set(named)].sort()).toEqual(internals.sort());
});

test('the installed releases are tested ones: add others to the table when the tests have passed', () => {
  expect(untestedDependencies()).toEqual([]);
});
