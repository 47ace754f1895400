import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/* Samples in the tests have names that no team would choose, because a team's feature may have any other name. */

const TEST = join(import.meta.dirname, '..');

/** Exceptions: the sample that docs/extending.md shows, and the test kit, which contains no sample. */
const NOT_SAMPLES = /^(example\/visits|kit)\//;

const files = readdirSync(TEST, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => join(entry.parentPath, entry.name))
  .filter((file) => !NOT_SAMPLES.test(relative(TEST, file)));

test.each([
  ['address', /@Controller\((?:\{ path: |\[)?'([^']*)'/g, /^(test-|:|$)/],
  ['table', /@Entity\('([^']*)'/g, /^test_/],
])('each %s of a sample begins with "test"', (_, pattern, allowed) => {
  const found = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, name = '']) => `${relative(TEST, file)}: ${name}`),
  );
  expect(found.length).toBeGreaterThan(2);
  expect(found.filter((each) => !allowed.test(each.slice(each.indexOf(': ') + 2)))).toEqual([]);
});
