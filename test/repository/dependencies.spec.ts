import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { differenceOf, type Reach } from '#runtime';
import { REACHES } from '../../libs/service/src/reaches.js';
import { withReachesTable } from '../../scripts/reaches-page.js';

const ROOT = join(import.meta.dirname, '../..');

const FILES = readdirSync(join(ROOT, 'libs'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.internals.ts'))
  .sort();

const isReach = (value: unknown): value is Reach => typeof (value as Partial<Reach> | null)?.check === 'function';

const exported = await Promise.all(
  FILES.map(async (file) => {
    const all = (await import(join(ROOT, 'libs', file))) as Record<string, unknown>;
    return Object.entries(all).filter((entry): entry is [string, Reach] => isReach(entry[1]));
  }),
);
const reaches = exported.flat().map(([, reach]) => reach);

test.each(FILES.map((file, index) => [file, exported[index]]))('libs/%s exports one reach', (_, found) => {
  expect(found).toHaveLength(1);
});

/** Whether an optional part checks a reach itself: another file of its library names it. */
function isOfPart(file: string, name: string): boolean {
  const library = join(ROOT, 'libs', file.slice(0, file.indexOf('/')));
  if (!existsSync(join(library, 'src/part.ts'))) return false;
  const others = readdirSync(library, { recursive: true, encoding: 'utf8' }).filter((each) => each.endsWith('.ts'));
  return others.some(
    (each) => !file.endsWith(each) && new RegExp(`\\b${name}\\b`).test(readFileSync(join(library, each), 'utf8')),
  );
}

test('the start checks every reach, and a part its own', () => {
  const unchecked = FILES.flatMap((file, index) =>
    (exported[index] ?? []).flatMap(([name, reach]) => (REACHES.includes(reach) || isOfPart(file, name) ? [] : [name])),
  );
  expect(unchecked).toEqual([]);
  expect(reaches).toEqual(expect.arrayContaining([...REACHES]));
});

test.each(reaches)('of $dependency, $touches is as known', async (reach) => {
  expect(await differenceOf(reach)).toBeUndefined();
});

test('the table of docs/dependencies.md is that of the code: run `npm run generate`', () => {
  const page = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
  expect(page).toBe(withReachesTable(page, reaches));
});
