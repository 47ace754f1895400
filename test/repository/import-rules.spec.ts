import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const ROOMS = join(ROOT, 'src/platform');

/** A second feature, with subfolders, that breaks no rule. */
const ORDERS: Record<string, string> = {
  'orders.module.ts': `import { PetsModule } from '../pets/pets.module.js'; export class OrdersModule { pets = PetsModule; }`,
  'orders.controller.ts': `import { OrdersService } from './orders.service.js'; export class OrdersController { orders = OrdersService; }`,
  'orders.service.ts': `import { OrdersRepository } from './orders.repository.js'; import { PetsService } from '../pets/pets.service.js'; export class OrdersService { orders = OrdersRepository; pets = PetsService; }`,
  'orders.repository.ts': `import { Database } from '../platform/database/database.js'; import { Order } from './entities/order.entity.js'; export class OrdersRepository { order = Order; database = Database; }`,
  'order-status.ts': `export const STATUS = 'placed';`,
  'entities/order.entity.ts': `import { Entity } from 'typeorm'; import { PetEntity } from '../../pets/pet.entity.js'; @Entity() export class Order { pet = PetEntity; }`,
  'dto/order.dto.ts': `import { Config } from '../../config.js'; import { StringProperty } from '../../platform/input/property.decorators.js'; import { Order } from '../entities/order.entity.js'; import { STATUS } from '../order-status.js'; export const all = [Config, StringProperty, Order, STATUS];`,
};

const DEFAULT_EXPORT = 'Prefer named exports';
const CYCLE = 'Dependency cycle';
const ROOM = (name: string): string => `does not let '${name}' import that`;

/** The importing file, an import that it must not have, and words of the linter's message. Imported files exist. */
const FORBIDDEN_IMPORTS: [file: string, imported: string, message: string][] = [
  // Inside the platform: lower room ← higher room, the same level, subfolders, and the top level.
  ['src/platform/errors/api-error.ts', '../json/int64.js', ROOM('errors')],
  ['src/platform/json/int64.ts', '../auth/public.decorator.js', ROOM('json')],
  ['src/platform/input/input-check.ts', '../database/database.js', ROOM('input')],
  ['src/platform/rate-limit/token-buckets.ts', '../key-usage/key-usage.js', ROOM('rate-limit')],
  ['src/platform/openapi/operation.ts', '../metrics/metrics.js', ROOM('openapi')],
  ['src/platform/database/connections/hang-up.ts', '../database.js', ROOM('database/connections')],
  ['src/platform/database/connections/hang-up.ts', '../sharing/batches.js', ROOM('database/connections')],
  ['src/platform/database/sharing/batches.ts', '../database.js', ROOM('database/sharing')],
  ['src/platform/database/embedded/engine-stream.ts', '../connections/hang-up.js', ROOM('database/embedded')],
  ['src/platform/database/schema/migrate.ts', '../data-source.js', ROOM('database/schema')],
  ['src/platform/database/database.ts', './sharing/batches.js', ROOM('database')],
  ['src/platform/auth/auth.module.ts', '../platform.module.js', ROOM('auth')],
  ['src/platform/clock.ts', './errors/api-error.js', 'so it imports no other'],

  // Between the parts of the application.
  ['src/platform/platform.module.ts', '../pets/pets.module.js', 'The platform knows no feature'],
  ['src/platform/auth/auth.module.ts', '../../pets/pets.service.js', 'The platform knows no feature'],
  ['src/platform/auth/auth.module.ts', '../../app.setup.js', 'The platform knows no feature'],
  ['src/platform/auth/auth.module.ts', '../../cli/terminal.js', 'The platform knows no feature'],
  ['src/config.ts', './platform/json/int64.js', 'config.ts imports only settings'],
  ['src/settings/setting.ts', '../platform/json/int64.js', 'they import only errors and nearest-name'],
  ['src/config.ts', './app.module.js', 'config.ts imports only settings'],
  ['src/pets/pets.service.ts', '../app.module.js', 'A feature imports the platform'],
  ['src/pets/pets.service.ts', '../cli/terminal.js', 'A feature imports the platform'],
  ['src/pets/pets.service.ts', '../orders/orders.repository.js', 'A feature imports the platform'],
  ['src/pets/pets.service.ts', '../orders/order-status.js', 'A feature imports the platform'],
  ['src/orders/dto/order.dto.ts', '../../pets/pet.dto.js', 'A feature imports the platform'],
  ['src/main.ts', './pets/pets.service.js', 'Only app.module.ts and commands name features'],
  ['src/app.setup.ts', './orders/orders.module.js', 'Only app.module.ts and commands name features'],
  ['src/app.module.ts', './pets/pets.service.js', 'The application imports the modules of features'],
  ['src/app.setup.ts', './cli/terminal.js', 'Only cli.ts and start-service.ts import the commands'],
  ['src/pets/pets.service.ts', '../cli/terminal.js', 'Only cli.ts and start-service.ts import the commands'],
  ['src/cli/program.ts', '../start/start-service.js', 'The start imports the commands'],
  ['src/cli/program.ts', '../cli.js', 'Nobody imports the entry points'],
  ['src/app.setup.ts', './main.js', 'Nobody imports the entry points'],
  ['src/start/start-service.ts', '../pets/pets.service.js', 'Only app.module.ts and commands name features'],
  ['src/pets/pets.service.ts', '../package/platform.js', 'Nobody imports the entry points'],
  ['src/platform/clock.ts', '../package/platform.js', 'Nobody imports the entry points'],
  ['test/support/app.ts', '../../src/main.js', 'Nobody imports the entry points'],
  ['src/app.setup.ts', '../test/support/app.js', 'imports no test'],
  ['src/cli/program.ts', '../../bench/run.js', 'imports no test'],
  ['src/app.setup.ts', '../migrations/1795219200000-create-pet.js', 'imports no test'],
  ['migrations/1795219200000-create-pet.ts', 'pg', 'imports only TypeORM'],
  ['migrations/1795219200000-create-pet.ts', '../src/config.js', 'imports only TypeORM'],

  // Inside a feature, with and without subfolders.
  ['src/pets/pet.entity.ts', '@nestjs/common', 'imports only TypeORM and entities'],
  ['src/pets/pet.entity.ts', './pet.dto.js', 'imports only TypeORM and entities'],
  ['src/orders/entities/order.entity.ts', '../order-status.js', 'imports only TypeORM and entities'],
  ['src/pets/pets.service.ts', './pets.controller.js', 'A service does not import its callers'],
  ['src/orders/orders.service.ts', '../pets/pets.module.js', 'A service does not import its callers'],
  ['src/pets/pets.repository.ts', './pets.service.js', 'A repository does not import its callers'],
  ['src/pets/pets.controller.ts', './pets.repository.js', 'A controller asks its service'],
  ['src/orders/orders.controller.ts', './entities/order.entity.js', 'A controller asks its service'],
  ['src/pets/pets.controller.ts', '../platform/database/sharing/batches.js', 'A controller asks its service'],
  ['src/pets/pet.dto.ts', '../platform/api-keys/api-keys.service.js', 'A DTO imports its entity'],
  ['src/orders/dto/order.dto.ts', '../orders.service.js', 'A DTO imports its entity'],

  // Everywhere.
  ['src/platform/database/schema/migrate.ts', '../../../config.js', 'At most two levels up'],
  ['src/orders/dto/order.dto.ts', '../../../src/config.js', 'At most two levels up'],
  ['src/pets/pets.service.ts', 'node:process', 'Only config.ts and settings/environment-file.ts read it'],
  ['src/orders/orders.repository.ts', './orders.service.js', CYCLE],
  ['src/platform/json/json-writer.ts', './json-body.js', CYCLE],
];

/** A file, code that it must not contain, and words of the linter's message. */
const FORBIDDEN_CODE: [file: string, code: string, message: string][] = [
  ['src/pets/pet.dto.spec.ts', `it('works', () => undefined);`, 'Write test'],
  ['src/pets/pets.controller.ts', `export * from './pets.service.js';`, 'No barrels'],
  ['src/platform/auth/auth.module.ts', `export * from './public.decorator.js';`, 'No barrels'],
  ['src/cli/terminal.ts', `export default 1;`, DEFAULT_EXPORT],
  [
    'src/pets/pets.service.ts',
    `export const home = process.env['HOME'];`,
    'Only config.ts and settings/environment-file.ts read it',
  ],
  ['src/main.ts', `export const { env } = process;`, 'Only config.ts and settings/environment-file.ts read it'],
  ['src/config.ts', `console.log(1);`, 'Unexpected console statement'],
  ['src/cli/terminal.ts', `console.log(1);`, 'Unexpected console statement'],
  [
    'src/pets/pets.controller.ts',
    `import type { Pet } from './pet.dto.js'; export const a = (b: Pet): Pet => b;`,
    'as values',
  ],
];

const CASES = [
  ...FORBIDDEN_IMPORTS.map(([file, imported, message]) => [file, `import * as a from '${imported}'; void a;`, message]),
  ...FORBIDDEN_CODE,
] as [file: string, code: string, message: string][];

/**
 * Runs in a separate process, because ESLint does not work inside Jest's module system. Rules that need types are left
 * out: they do not check imports, and take most of the time.
 */
const LINT = `
  import { ESLint } from 'eslint';
  import { pathToFileURL } from 'node:url';
  const { PLATFORM_ROOMS } = await import(pathToFileURL('eslint.config.js').href);
  const eslint = new ESLint({
    ruleFilter: ({ ruleId }) => !ruleId.startsWith('@typescript-eslint/'),
    overrideConfig: { languageOptions: { parserOptions: { projectService: false } } },
  });
  const messages = [];
  for (const [file, code] of JSON.parse(process.argv[1])) {
    const [result] = await eslint.lintText(code, { filePath: file });
    messages.push(result.messages.map(({ message }) => message).join('\\n'));
  }
  process.stdout.write(JSON.stringify({ messages, rooms: PLATFORM_ROOMS }));
`;

let copy: string;
let messages: string[];
let ordersMessages: string[];
let rooms: Record<string, string[]>;

/** Lints in a copy of the repository, to which the second feature is added. */
beforeAll(async () => {
  copy = await realpath(await mkdtemp(join(tmpdir(), 'petstore-import-rules-')));
  for (const path of ['src', 'test', 'bench', 'migrations', 'eslint.config.js', 'tsconfig.json', 'package.json']) {
    await cp(join(ROOT, path), join(copy, path), { recursive: true });
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const orders = Object.entries(ORDERS).map(([file, code]) => [join('src/orders', file), code] as const);
  for (const [file, code] of orders) {
    await mkdir(dirname(join(copy, file)), { recursive: true });
    await writeFile(join(copy, file), code);
  }
  const files = [...orders, ...CASES.map(([file, code]) => [file, code] as const)];
  const args = ['--input-type=module', '--eval', LINT, JSON.stringify(files)];
  const env = { PATH: process.env['PATH'] };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: copy, env });
  const answer = JSON.parse(stdout) as { messages: string[]; rooms: Record<string, string[]> };
  ordersMessages = answer.messages.slice(0, orders.length);
  messages = answer.messages.slice(orders.length);
  rooms = answer.rooms;
}, 240_000);

afterAll(() => rm(copy, { recursive: true, force: true }));

test.each(CASES.map(([file, code, message], index) => [file, code, message, index] as const))(
  'the linter refuses in %s: %s',
  (_file, _code, message, index) => {
    expect(messages[index]).toContain(message);
  },
);

test('the linter accepts a feature with subfolders', () => {
  expect(ordersMessages).toEqual(Object.keys(ORDERS).map(() => ''));
});

describe('the table of the rooms of the platform', () => {
  test('names exactly the folders with code', async () => {
    const files = await readdir(ROOMS, { recursive: true });
    const folders = new Set(files.filter((file) => file.endsWith('.ts')).map((file) => dirname(file)));
    folders.delete('.');
    expect(Object.keys(rooms).sort()).toEqual([...folders].sort());
  });

  test('has no cycle: a room imports only rooms above it', () => {
    const names = Object.keys(rooms);
    for (const [room, imported] of Object.entries(rooms)) {
      expect(names.slice(0, names.indexOf(room))).toEqual(expect.arrayContaining(imported));
    }
  });

  test('permits no import that the code does not need', async () => {
    for (const [room, imported] of Object.entries(rooms)) {
      expect([room, await roomsImportedBy(room)]).toEqual([room, [...imported].sort()]);
    }
  });
});

/** The other rooms that the files of a room import, in alphabetical order. */
async function roomsImportedBy(room: string): Promise<string[]> {
  const folder = join(ROOMS, room);
  const files = (await readdir(folder)).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const paths = texts.flatMap((text) => [...text.matchAll(/\bfrom '(\.[^']+)'/g)].map(([, path]) => path as string));
  const folders = paths.map((path) => relative(ROOMS, dirname(join(folder, path))));
  return [...new Set(folders)].filter((name) => name !== room && name !== '' && !name.startsWith('..')).sort();
}
