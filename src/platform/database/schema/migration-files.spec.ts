import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { StartupError } from '../../errors/startup-error.js';
import { loadMigrations } from './migration-files.js';

/** A migration class of this name. */
function migrationOf(name: string): new () => { up(): Promise<void>; down(): Promise<void> } {
  const holder = {
    [name]: class {
      up(): Promise<void> {
        return Promise.resolve();
      }
      down(): Promise<void> {
        return Promise.resolve();
      }
    },
  };
  return holder[name] as ReturnType<typeof migrationOf>;
}

const ORDERS = migrationOf('CreateOrders1795400000000');

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-migrations-'));
  await writeFile(join(directory, 'package.json'), '{"type":"module"}');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function write(file: string, name: string): Promise<void> {
  await writeFile(join(directory, file), `export class ${name} { async up() {} async down() {} }`);
}

test('classes and directories are added to the migrations of the service', async () => {
  const own = await loadMigrations([]);
  expect(own.length).toBeGreaterThan(0);
  await write('1795300000000-create-shops.js', 'CreateShops1795300000000');
  await write('1795300000001-fill-shops.js', 'FillShops1795300000001');
  // Compilers write declarations beside their output.
  await writeFile(join(directory, '1795300000000-create-shops.d.ts'), 'export declare class CreateShops {}');
  await writeFile(join(directory, '1795300000000-create-shops.js.map'), '{}');

  const loaded = await loadMigrations([ORDERS, pathToFileURL(directory)]);

  const names = ['CreateOrders1795400000000', 'CreateShops1795300000000', 'FillShops1795300000001'];
  expect(loaded.slice(0, own.length)).toEqual(own);
  expect(loaded.slice(own.length).map(({ name }) => name)).toEqual(names);
});

test('a class that is given twice counts once; another class of the same name is refused', async () => {
  const once = await loadMigrations([ORDERS]);
  expect(await loadMigrations([ORDERS, ORDERS])).toHaveLength(once.length);
  await expectRefusal(
    [ORDERS, migrationOf('CreateOrders1795400000000')],
    'Two migrations have the name CreateOrders1795400000000',
  );
});

test.each([
  [
    'a class without a time in its name',
    migrationOf('CreateOrders'),
    'must end in its time in ms, 13 digits, such as CreateOrders1',
  ],
  [
    'a class without up',
    class Some1795400000000 {},
    'What is given as a migration must be a class with the methods up and down',
  ],
  [
    'something else',
    'migrations' as never,
    'What is given as a migration must be a class with the methods up and down',
  ],
  [
    'a missing directory',
    new URL('file:///nowhere/migrations'),
    'The migrations of file:///nowhere/migrations/ cannot be read: ENOENT',
  ],
])('%s is refused', async (_, source, message) => {
  await expectRefusal([source as typeof ORDERS], message);
});

test('a directory without migrations, and a file that exports something else, are refused', async () => {
  await expectRefusal([pathToFileURL(directory)], 'has no migrations: compiled files with names such as');
  await writeFile(join(directory, '1795300000000-create-shops.js'), 'export const shops = 1;');
  await expectRefusal([pathToFileURL(directory)], 'What 1795300000000-create-shops.js exports must be a class');
});

async function expectRefusal(sources: Parameters<typeof loadMigrations>[0], message: string): Promise<void> {
  const refusal = await loadMigrations(sources).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StartupError);
  expect((refusal as Error).message).toContain(message);
}
