import { readdir, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { administer } from '../support/postgresql-database.js';
import { RepositoryCopy } from '../support/repository-copy.js';
import { ServiceProcess } from '../support/service-process.js';

/*
 * `nest generate` in a copy of the repository. A team can commit a feature unchanged; compiler, linter and formatter accept
 * a resource of Nest's own, and it serves requests.
 */

import.meta.jest.setTimeout(600_000);

const BOOTSTRAP_API_KEY = 'bootstrap-key-of-the-tests';
const NEST = 'node_modules/@nestjs/cli/bin/nest.js';
const ESLINT = 'node_modules/eslint/bin/eslint.js';
const PRETTIER = 'node_modules/prettier/bin/prettier.cjs';
const SCOPES = '--scopes gift-boxes:read,gift-boxes:write,gift-boxes:delete';

let copy: RepositoryCopy;
let before: Set<string>;
let created: string[];
let database: TestDatabase;
let service: ServiceProcess | undefined;

beforeAll(async () => {
  copy = await RepositoryCopy.create();
  before = new Set(await filesOf(copy));
  database = await createTestDatabase();
});
afterAll(async () => {
  await service?.kill();
  await database.drop();
  await copy.remove();
});

/** The files of the copy that people edit: migrations, sources and tests. */
async function filesOf({ path }: RepositoryCopy): Promise<string[]> {
  const folders = ['migrations', 'src', 'test'];
  const files = folders.map(async (folder) =>
    (await readdir(join(path, folder), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1)),
  );
  return (await Promise.all(files)).flat();
}

test('an unusable name is refused with a message that says what to take instead, and nothing is written', async () => {
  await writeFile(join(copy.path, 'test/api/toys.e2e-spec.ts'), '');
  const meansElse = 'means something else in TypeScript or in the generated code. Take store-';
  const refusals: [name: string, sentence: string][] = [
    ['pets', 'src/pets exists. Remove it, or take another name.'],
    ['toys', 'test/api/toys.e2e-spec.ts exists. Remove it, or take another name.'],
    ['clients', '-create-client-and-api-key.ts makes a table client already. Take another name.'],
    ['pet-statuses', 'openapi.json has PetStatus already. Take another name.'],
    ['gift-box', "'gift-box' is no plural. Take gift-boxes."],
    [
      'equipment',
      "'equipment' has no singular of its own, which the class of one row needs. Take equipment-entries, for",
    ],
    ['classes', meansElse],
    ['maps', meansElse],
    ['../boxes', "'../boxes' cannot name a feature. Take a plural"],
    ['2boxes', "'2boxes' cannot name a feature. Take a plural"],
  ];
  for (const [name, sentence] of refusals) {
    expect(await copy.run(NEST, ['generate', 'feature', name])).toContain(sentence);
  }
  expect(await copy.run(NEST, ['generate', 'feature'])).toContain(
    'A feature needs a name, a plural such as orders: npm run generate:feature -- orders.',
  );
  await rm(join(copy.path, 'test/api/toys.e2e-spec.ts'));
  expect((await filesOf(copy)).filter((file) => !before.has(file))).toEqual([]);
});

test('a feature has entity, migration, DTOs, repository, service, controller, module and test', async () => {
  const printed = await copy.run(NEST, ['generate', 'feature', 'gift-boxes']);
  // `union` is reserved in SQL, so the table of this feature is called `unions`.
  await copy.run(NEST, ['generate', 'feature', 'unions']);
  created = (await filesOf(copy)).filter((file) => !before.has(file));
  expect(created.map((file) => file.replace(/\d{13}/, '<time>')).sort()).toEqual([
    'migrations/<time>-create-gift-box.ts',
    'migrations/<time>-create-union.ts',
    ...['gift-box.dto', 'gift-box.entity'].map((name) => `src/gift-boxes/${name}.ts`),
    ...['controller', 'module', 'repository', 'service'].map((kind) => `src/gift-boxes/gift-boxes.${kind}.ts`),
    ...['union.dto', 'union.entity'].map((name) => `src/unions/${name}.ts`),
    ...['controller', 'module', 'repository', 'service'].map((kind) => `src/unions/unions.${kind}.ts`),
    'test/api/gift-boxes.e2e-spec.ts',
    'test/api/unions.e2e-spec.ts',
  ]);
  for (const file of created) {
    expect([file, /sample|1700000000000/i.test(await copy.read(file))]).toEqual([file, false]);
  }
  expect(await copy.read('src/app.module.ts')).toMatch(/\n {4}GiftBoxesModule,\n {4}UnionsModule,\n {2}\],\n/);
  const migrations = created.filter((file) => file.startsWith('migrations/'));
  const [boxes = '', unions = ''] = await Promise.all(migrations.sort().map((file) => copy.read(file)));
  expect([boxes, unions]).toEqual([
    expect.stringContaining('CREATE TABLE gift_box ('),
    expect.stringContaining('CREATE TABLE unions ('),
  ]);
  // The same feature made in two branches conflicts in this file, so that no merge keeps both migrations unseen.
  expect(await copy.read('src/unions/union.entity.ts')).toContain(basename(migrations[1] ?? '', '.ts'));
  const next = printed.slice(printed.indexOf('\nNext:'));
  const steps = [
    'npm run generate',
    'npm test -- gift-boxes',
    SCOPES,
    'open to every key',
    '#how-do-i-make-a-name-unique',
  ];
  expect(steps.filter((step) => !next.includes(step))).toEqual([]);
});

/** Adds the same member as the guide, with the guide's lines changed for the feature `unions`. */
async function addTheMemberOfTheGuide(): Promise<void> {
  const guide = (await copy.read('docs/extending.md')).split('### 3. Add a field\n')[1] ?? '';
  const block = (/```ts\n(.*?)```/s.exec(guide)?.[1] ?? '').replaceAll('toy', 'union').replaceAll('Toy', 'Union');
  const [, column = '', property = '', member = '', toUnion = ''] = block.split(/^\/\/ .+\n/m);
  const edit = async (file: string, place: string | RegExp, text: string): Promise<void> => {
    const before = await copy.read(file);
    const after = before.replace(place, () => text);
    expect([file, after === before]).toEqual([file, false]);
    await writeFile(join(copy.path, file), after);
  };
  const [migration = ''] = created.filter((file) => file.endsWith('-create-union.ts'));
  await edit(migration, 'name varchar', `${column.trim()}\n        name varchar`);
  await edit('src/unions/union.entity.ts', /}\n$/, `\n${property}}\n`);
  await edit('src/unions/union.dto.ts', 'export class NewUnion {', `export class NewUnion {\n${member}`);
  await edit('src/unions/union.dto.ts', /export function toUnion.*/s, toUnion);
  await edit('src/unions/union.dto.ts', 'Int64Property,', 'Int64Property, IntegerProperty,');
  const spec = 'test/api/unions.e2e-spec.ts';
  await edit(spec, '{ name }', '{ name, priceCents: 1250 }');
  await edit(spec, "name: 'First' }]", "name: 'First', priceCents: 1250 }]");
  await edit(spec, "'name is required'", "'priceCents is required; name is required'");
}

test('compiler, linter, formatter and tests accept a generated feature, unchanged and with the member that the guide adds', async () => {
  await addTheMemberOfTheGuide();
  const changed = [...created, 'src/app.module.ts'];
  const types = { extends: './tsconfig.json', include: [...changed, 'libs/**/*.d.ts', 'test/**/*.d.ts'] };
  await writeFile(join(copy.path, 'tsconfig.generated.json'), JSON.stringify(types));
  const generated = await copy.run('scripts/generate.js');
  expect(generated).toMatch(/^Changed: .*openapi\.json.* The other generated files are current\.\n/m);
  const lint = async (): Promise<void> => {
    await copy.run('node_modules/typescript/bin/tsc', ['--noEmit', '--project', 'tsconfig.generated.json']);
    await copy.run(ESLINT, changed);
    await copy.run(PRETTIER, ['--check', ...changed.filter((file) => !file.includes('union'))]);
  };
  const names = [
    'api/gift-boxes',
    'api/unions',
    'api/openapi',
    'platform/migrations.e2e',
    'import-rules',
    'documentation',
  ];
  const runTests = async (): Promise<void> => {
    await copy.run('scripts/test.js', ['unit,any-engine,postgresql', ...names, '--maxWorkers=2']);
    await copy.run('scripts/test.js', ['embedded', 'api/gift-boxes']);
  };
  await Promise.all([lint(), runTests()]);
});

/** Adds a shutdown hook that logs the signal to a module. */
async function addHook(path: string): Promise<void> {
  const hook = "  onApplicationShutdown(signal?: string) { new Logger('Hook').log(`hook: ${signal}`); }";
  const text = await copy.read(path);
  const changed = text.replace('{ Module }', '{ Logger, Module }').replace('Module {}', `Module {\n${hook}\n}`);
  await writeFile(join(copy.path, path), changed);
}

test("compiler, linter and formatter accept two resources of Nest's own", async () => {
  for (const name of ['gadgets', 'gizmos']) {
    await copy.run(NEST, ['generate', 'resource', name, '--type', 'rest', '--crud']);
  }
  expect(await copy.read('src/app.module.ts')).toContain('\n    GadgetsModule,\n    GizmosModule,\n  ],\n');
  const generated = ['src/gadgets', 'src/gizmos', 'src/app.module.ts'];
  await copy.run(PRETTIER, ['--check', ...generated]);
  await copy.run(ESLINT, generated);
  // With a rule in its class, the service checks the bodies of this resource.
  await writeFile(
    join(copy.path, 'src/gizmos/dto/create-gizmo.dto.ts'),
    "import { IsString } from 'class-validator';\nexport class CreateGizmoDto { @IsString() name: string; }\n",
  );
  for (const path of ['src/gadgets/gadgets.controller.ts', 'src/gizmos/gizmos.controller.ts']) {
    const text = (await copy.read(path)).replace(/@(?=Controller\()/, '@RequireScopes()\n@');
    const line = "import { RequireScopes } from '#platform';\n";
    await writeFile(join(copy.path, path), line + text);
  }
  await addHook('src/gadgets/gadgets.module.ts');
  await copy.run('scripts/build-if-needed.js');
});

test('the service serves what was generated, after the command migrate, and its hooks get the signal', async () => {
  const { ownerSettings } = database;
  const asOwner = (statements: string): Promise<void> => administer(ownerSettings.DATABASE_URL ?? '', statements);
  const printed = await copy.run('dist/src/cli.js', ['migrate'], ownerSettings);
  expect(printed).toMatch(/CreateGiftBox\d{13}[^]*CreateUnion\d{13}/);
  const words = `keys create --client shop --quiet ${SCOPES}`.split(' ');
  const apiKey = (await copy.run('dist/src/cli.js', words, ownerSettings)).trim();
  const settings = { ...database.settings, BOOTSTRAP_API_KEY };
  service = new ServiceProcess(settings, copy.path, { program: [join(copy.path, 'dist/src/main.js')] });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  // A column that changes what is stored, as numeric(12, 2) does.
  await asOwner('ALTER TABLE gift_box ALTER name TYPE char(8)');
  const added = await client.post('/v1/gift-boxes', { name: 'First' }, { apiKey });
  expect([added.status, added.json]).toEqual([201, { id: 1, name: 'First   ' }]);
  expect((await client.get('/v1/gift-boxes', { apiKey })).json).toEqual([added.json]);
  // A create that is committed succeeds, though its row cannot be read.
  const { username } = new URL(database.settings.DATABASE_URL ?? '');
  await asOwner(`REVOKE SELECT ON gift_box FROM ${username}; GRANT SELECT (id) ON gift_box TO ${username}`);
  const unread = await client.post('/v1/gift-boxes', { name: 'Next' }, { apiKey });
  expect([unread.status, unread.json]).toEqual([201, { id: 2, name: 'Next' }]);

  const answers = [
    await client.post('/v1/gadgets', { any: 1 }),
    await client.get('/v1/gizmos/7'),
    await client.send('PATCH', '/v1/gizmos/7', { body: { name: 'Ann' } }),
    await client.post('/v1/gizmos', { name: 7 }),
    await client.get('/v1/gadgets', { apiKey: null }),
  ];
  expect(answers.map(({ status, text }) => [status, status < 400 ? text : (JSON.parse(text) as object)])).toEqual([
    [201, 'This action adds a new gadget'],
    [200, 'This action returns a #7 gizmo'],
    [200, 'This action updates a #7 gizmo'],
    [400, { code: 'validation_failed', message: 'name must be a string', status: 400 }],
    [401, expect.objectContaining({ code: 'missing_api_key' })],
  ]);
  expect((await client.get('/openapi.json')).text).toContain('"operationId": "GizmosController_findAll"');

  expect(await service.stop('SIGINT')).toBe(0);
  expect(service.stdout).toContain('"msg":"hook: SIGINT"');
});
