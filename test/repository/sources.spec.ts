import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/* Rules about the words of source files, which the linter does not check. */

const ROOT = join(import.meta.dirname, '../..');

/** All matches below a folder, each behind the path of its file. */
function matches(folder: string, files: RegExp, pattern: RegExp): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => files.test(name))
    .flatMap((name) => {
      const text = readFileSync(join(ROOT, folder, name), 'utf8');
      return [...text.matchAll(pattern)].map(([found, word = found]) => `${name}: ${word}`);
    });
}

test('libs, without the tests of parts, names no feature: no word, or part of an identifier, is pet, pets, animal or animals', () => {
  const feature =
    /(?<![A-Za-z])(?:pet|animal)s?(?![a-z])|(?<![A-Z])(?:Pet|Animal)s?(?![a-z])|(?<![A-Za-z])(?:PET|ANIMAL)S?(?![A-Za-z])/g;
  expect(matches('libs', /^[\w-]+\/(?!test\/).*\.(ts|js|css|txt)$/, feature)).toEqual([]);
  expect(matches('src/pets', /\.ts$/, feature).length).toBeGreaterThan(100);
});

/** The features that teams copy. */
const FEATURES = ['src/pets', 'schematics/feature/files/src', 'test/example', 'examples/orders/src/orders'];

test('the features that teams copy import the platform from the door of the package alone', () => {
  const doors = FEATURES.flatMap((folder) => matches(folder, /\.ts$/, /from '(#[^']+|[^']*\/libs\/[^']+)'/g));
  const besides = doors.filter((door) => !/: #platform$|\.commands\.ts: #service$/.test(door));
  expect([doors.length > 10, besides]).toEqual([true, []]);
});

test('a file of a feature has at most eight imports', () => {
  const files = FEATURES.flatMap((folder) => matches(folder, /\.ts$/, /^import [^]*?;$/gm)).map(
    (found) => found.split(':')[0],
  );
  const counts = [...new Set(files)].map((file) => [file, files.filter((each) => each === file).length] as const);
  expect(counts.filter(([, count]) => count > 8)).toEqual([]);
  expect(counts.length).toBeGreaterThan(20);
});

test('pg, whose undocumented members are used, is pinned exactly', () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  expect(dependencies['pg']).toMatch(/^\d+\.\d+\.\d+$/);
});

/* A team's feature may have any other name. Exceptions: the example, and the test kit. */
test('addresses and tables of samples in the tests begin with "test"', () => {
  const samples = /^(?!example\/visits|kit).*\.ts$/;
  const addresses = matches('test', samples, /@Controller\((?:\{ path: |\[)?'([^']*)'/g);
  const tables = matches('test', samples, /@Entity\('([^']*)'/g);
  expect(Math.min(addresses.length, tables.length)).toBeGreaterThan(2);
  expect(addresses.filter((found) => !/: (test-|:|$)/.test(found))).toEqual([]);
  expect(tables.filter((found) => !/: test_/.test(found))).toEqual([]);
});
