import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/*
 * Databases record a migration by its name alone. One that changes after its release would leave two schemas that both
 * count as current.
 */

/** SHA-256 of each released migration. A release adds its own; no line ever changes. */
const RELEASED: Readonly<Record<string, string>> = {
  '1795219200000-create-pet.ts': 'bedb85fb51676fee5865bc9bbbb613d407d7598cfe47aa6e799ed39eac632e51',
  '1795219260000-create-client-and-api-key.ts': '27a2a4afdd8edf6086330d2e3e93c044014e3a2e2cd3e5c23f74e04449b050a3',
  '1795219320000-create-key-usage.ts': 'ac14f21098b79f751f29b6227fa112235ba023a552f9852c169cfba87cd1b982',
  '1795219380000-create-idempotency-key.ts': '8d09647f7f2cfe055b14766d3cf1b6ba8ad6bdd8d38824db3076851d6a0bab40',
};

const ROOT = new URL('../../', import.meta.url);
const DIRECTORIES = [
  'migrations/',
  ...readdirSync(new URL('libs', ROOT)).map((library) => `libs/${library}/src/migrations/`),
].filter((path) => existsSync(new URL(path, ROOT)));
const PLACES = new Map(
  DIRECTORIES.flatMap((path) =>
    readdirSync(new URL(path, ROOT))
      .filter((file) => file.endsWith('.ts'))
      .map((file) => [file, new URL(path + file, ROOT)]),
  ),
);

const hashOf = (file: URL): string =>
  createHash('sha256').update(readFileSync(file, 'utf8').replaceAll('\r\n', '\n')).digest('hex');

test.each(Object.keys(RELEASED))('%s is as it was released', (file) => {
  const place = PLACES.get(file);
  const found = place === undefined ? 'missing' : hashOf(place);
  const advice = 'A released migration never changes: undo the change, and add a new migration instead.';
  expect({ file, hash: found, advice }).toEqual({ file, hash: RELEASED[file], advice });
});

test('a release lists all migrations; others may change until then', () => {
  const added = [...PLACES].filter(([file]) => !Object.hasOwn(RELEASED, file));
  const isRelease = !readFileSync(new URL('CHANGELOG.md', ROOT), 'utf8').includes('\n## Unreleased\n');
  // Each of these must be a line of RELEASED.
  expect(isRelease ? added.map(([file, place]) => `'${file}': '${hashOf(place)}',`) : []).toEqual([]);
});
