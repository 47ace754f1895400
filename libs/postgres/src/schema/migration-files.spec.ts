import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { StartupError } from '#runtime';
import { loadMigrations } from '../data-source.js';

class CreateOrders1795400000000 {
  up(): Promise<void> {
    return Promise.resolve();
  }
  down(): Promise<void> {
    return Promise.resolve();
  }
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-migrations-'));
  await writeFile(join(directory, 'package.json'), '{"type":"module"}');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function write(file: string, name: string): Promise<void> {
  await writeFile(join(directory, file), `export class ${name} { async up() {} async down() {} }`);
}

test('classes, and the classes of directories', async () => {
  await write('1795300000000-create-shops.js', 'CreateShops1795300000000');
  await write('1795300000001-fill-shops.js', 'FillShops1795300000001');
  // Compilers write declarations beside their output.
  await writeFile(join(directory, '1795300000000-create-shops.d.ts'), 'export declare class CreateShops {}');
  await writeFile(join(directory, '1795300000000-create-shops.js.map'), '{}');

  const loaded = await loadMigrations([CreateOrders1795400000000, pathToFileURL(directory)]);

  const names = ['CreateOrders1795400000000', 'CreateShops1795300000000', 'FillShops1795300000001'];
  expect(loaded.map(({ name }) => name)).toEqual(names);
});

test('a missing directory, and one without migrations, are refused', async () => {
  for (const source of [new URL('file:///nowhere/migrations'), pathToFileURL(directory)]) {
    const refusal = await loadMigrations([source]).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StartupError);
    expect((refusal as Error).message).toContain(
      `${source.href}/ has no migrations: compiled files with names such as `,
    );
  }
});
