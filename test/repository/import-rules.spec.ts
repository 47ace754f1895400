import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RepositoryCopy } from '../support/repository-copy.js';

const ROOT = join(import.meta.dirname, '../..');
const LIBS = join(ROOT, 'libs');

/** A second feature, with subfolders, that breaks no rule. */
const ORDERS = Object.entries({
  'orders.controller.ts': `import { OrdersService } from './orders.service.js'; void OrdersService;`,
  'orders.service.ts': `import { PetsService } from '../pets/pets.service.js'; export class OrdersService { p = PetsService; }`,
  'order-status.ts': `export const STATUS = 'placed';`,
  'entities/order.entity.ts': `import { PetEntity } from '../../pets/pet.entity.js'; export class Order { p = PetEntity; }`,
  'dto/order.dto.ts': `
    import { Order } from '../entities/order.entity.js';
    import { STATUS } from '../order-status.js';
    void [Order, STATUS];`,
}).map(([file, code]) => [join('src/orders', file), code] as const);

/** The importing file, an import that it must not have, and words of the linter's message. Imported files exist. */
const FORBIDDEN_IMPORTS: [file: string, imported: string, message: string][] = [
  ['libs/errors/src/api-error.ts', '#json', `'errors' may import the libraries below it`],
  ['libs/json/src/json-writer.ts', '#edge', `'json' may import the libraries below it`],
  ['libs/edge/src/body-reader.ts', '../../json/src/int64.js', 'A library has one door'],
  ['libs/access/src/auth.module.ts', '../../../src/pets/pets.service.js', `'access' may import the libraries below it`],
  ['src/app.module.ts', '../libs/json/src/int64.js', 'A library has one door'],
  ['src/pets/pets.service.ts', '../orders/order-status.js', 'A feature imports libraries'],
  ['src/main.ts', './pets/pets.service.js', 'Only app.module.ts and app.description.ts name features'],
  ['src/app.module.ts', './pets/pets.service.js', 'The application imports the modules of features'],
  ['src/app.description.ts', './pets/pets.service.js', 'The definition imports the commands of features'],
  ['libs/service/src/set-up.ts', '#docs-pages', `'service' may import the libraries below it`],
  ['src/pets/pets.service.ts', '../main.js', 'Nobody imports the entry points'],
  ['src/app.module.ts', '../test/support/app.js', 'imports no test'],
  ['migrations/1795219200000-create-pet.ts', 'pg', 'imports only TypeORM'],
  ['src/pets/pet.entity.ts', './pet.dto.js', 'imports only TypeORM and entities'],
  ['src/orders/entities/order.entity.ts', '@nestjs/common', 'imports only TypeORM and entities'],
  ['src/pets/pets.service.ts', './pets.controller.js', 'A service does not import its callers'],
  ['src/pets/pets.repository.ts', './pets.service.js', 'A repository does not import its callers'],
  ['src/orders/orders.controller.ts', './entities/order.entity.js', 'A controller asks its service'],
  ['src/pets/pets.controller.ts', '#postgres', 'A controller asks its service'],
  ['src/orders/dto/order.dto.ts', '../orders.service.js', 'A DTO imports its entity'],
  ['src/orders/dto/order.dto.ts', '../../../src/app.module.js', 'At most two levels up'],
  ['src/pets/pets.service.ts', 'node:process', 'Only libs/settings reads it'],
  ['libs/json/src/json-scan.ts', './json-reader.js', 'Dependency cycle'],
  ['src/pets/pets.service.ts', '@nestjs/core/internal', 'only *.internals.ts'],
  ['libs/postgres/src/database.ts', 'pg/lib/utils.js', 'only *.internals.ts'],
  ['libs/postgres/src/database.ts', 'pg-protocol', 'only *.internals.ts'],
];

/** Code that touches what a dependency does not document. */
const UNDOCUMENTED = [
  `import { DECORATORS } from '@nestjs/swagger'; void DECORATORS;`,
  `import { ApplicationConfig } from '@nestjs/core'; void ApplicationConfig;`,
  `import { getMetadataStorage } from 'class-validator'; void getMetadataStorage;`,
  `import type { Connection } from 'pg'; export type A = Connection;`,
  `import '@nestjs/common/constants.js';`,
  `export const a = (b: never) => b._c;`,
  `export const a = (b: never) => { b._write = undefined; };`,
  `export const a = (b: never) => b.driver.master;`,
  `export const a = (b: never) => b['transformOptions'];`,
  `export const a = ({ isTransient }: never) => isTransient;`,
  `export const a = (b: never) => Object.create(b, { obtainMasterConnection: { value: 1 } });`,
  `export const a = (b: never) => b.router.stack;`,
  `export const a = (b: never) => { const { stack } = b.router; return stack; };`,
];

const INTERNALS = UNDOCUMENTED.map((code) => ['libs/input/src/class-rules.internals.ts', code] as const);

/** A file, code that it must not contain, and words of the linter's message. */
const FORBIDDEN_CODE: [file: string, code: string, message: string][] = [
  ['src/pets/pet.dto.spec.ts', `it('works', () => undefined);`, 'Write test'],
  ['src/pets/pets.controller.ts', `export * from './pets.service.js';`, 'No barrels'],
  [
    'src/pets/pets.controller.ts',
    `import { Database } from '#platform'; void Database;`,
    'A controller asks its service',
  ],
  ['libs/commands/src/terminal.ts', `export default 1;`, 'Prefer named exports'],
  ['src/main.ts', `export const { env } = process;`, 'Only libs/settings reads it'],
  ...UNDOCUMENTED.flatMap((code): [file: string, code: string, message: string][] => [
    ['libs/json/src/json-writer.ts', code, 'only *.internals.ts'],
    ['src/pets/pets.service.ts', code, 'only *.internals.ts'],
  ]),
  ['src/pets/pets.controller.ts', `export const a = (b: never) => b._c;`, 'only *.internals.ts'],
  ['libs/commands/src/terminal.ts', `console.log(1);`, 'Unexpected console statement'],
  [
    'src/pets/pets.controller.ts',
    `import type { Pet } from './pet.dto.js'; export const a = (b: Pet): Pet => b;`,
    'as values',
  ],
];

const CASES = FORBIDDEN_IMPORTS.map(([file, imported, message]): (typeof FORBIDDEN_CODE)[number] => {
  return [file, `import * as a from '${imported}'; void a;`, message];
}).concat(FORBIDDEN_CODE);

/**
 * Runs in a separate process, because ESLint does not work inside Jest's module system. Rules that need types are left
 * out: they do not check imports, and take most of the time.
 */
const LINT = `
  import { ESLint } from 'eslint';
  import { pathToFileURL } from 'node:url';
  const { LIBRARIES } = await import(pathToFileURL('eslint.config.js').href);
  const eslint = new ESLint({
    ruleFilter: ({ ruleId }) => !ruleId.startsWith('@typescript-eslint/'),
    overrideConfig: { languageOptions: { parserOptions: { projectService: false } } },
  });
  const messages = [];
  for (const [file, code] of JSON.parse(process.argv[1])) {
    const [result] = await eslint.lintText(code, { filePath: file });
    messages.push(result.messages.map(({ message }) => message).join('\\n'));
  }
  process.stdout.write(JSON.stringify({ messages, libraries: LIBRARIES }));
`;

let copy: RepositoryCopy;
let messages: string[];
let libraries: string[];

/** Lints in a copy of the repository, to which the second feature is added. */
beforeAll(async () => {
  copy = await RepositoryCopy.create();
  for (const [file, code] of ORDERS) {
    await mkdir(dirname(join(copy.path, file)), { recursive: true });
    await writeFile(join(copy.path, file), code);
  }
  const files = [...CASES.map(([file, code]) => [file, code]), ...ORDERS, ...INTERNALS];
  const printed = await copy.run('--input-type=module', ['--eval', LINT, JSON.stringify(files)]);
  ({ messages, libraries } = JSON.parse(printed) as { messages: string[]; libraries: string[] });
}, 240_000);
afterAll(() => copy.remove());

test.each(CASES.map((row, index) => [...row, index] as const))(
  'the linter refuses in %s: %s',
  (_file, _code, message, index) => expect(messages[index]).toContain(message),
);

test('the linter accepts a feature with subfolders, and in *.internals.ts what a dependency does not document', () => {
  expect(messages.slice(CASES.length)).toEqual([...ORDERS, ...INTERNALS].map(() => ''));
});

test('the order of libraries names exactly the folders, and no import, dynamic or of types, runs up', async () => {
  const files = (await readdir(LIBS, { recursive: true })).filter((file) =>
    /^[^/]+\/(src\/.*)?[^/]+(?<!\.spec)\.ts$/.test(file),
  );
  const folderOf = (file: string): string => file.split('/', 1)[0] as string;
  expect(libraries.toSorted()).toEqual([...new Set(files.map(folderOf))].sort());
  const up: string[] = [];
  for (const file of files) {
    const text = await readFile(join(LIBS, file), 'utf8');
    for (const [, name = ''] of text.matchAll(/(?:from |import\()'#([^']+)'/g))
      if (libraries.indexOf(name) >= libraries.indexOf(folderOf(file))) up.push(`${file} imports ${name}`);
  }
  expect(up).toEqual([]);
});
