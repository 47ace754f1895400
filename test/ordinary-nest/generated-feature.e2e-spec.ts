import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { RepositoryCopy } from '../support/repository-copy.js';
import { ServiceProcess } from '../support/service-process.js';

/* `nest generate feature` in a copy of the repository: a team can commit the generated files unchanged. */

import.meta.jest.setTimeout(600_000);

const NEST = 'node_modules/@nestjs/cli/bin/nest.js';

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

/**
 * Runs the generator once for each name, without writing files. Returns for each name the message of the refusal, or the
 * name of the migration.
 */
async function tryNames(names: readonly string[]): Promise<string[]> {
  const script = `
    const { normalize, virtualFs } = require('@angular-devkit/core');
    const { NodeJsSyncHost } = require('@angular-devkit/core/node');
    const { HostTree } = require('@angular-devkit/schematics');
    const { SchematicTestRunner } = require('@angular-devkit/schematics/testing');
    const runner = new SchematicTestRunner('petstore-schematics', require.resolve('./schematics/collection.json'));
    const host = new virtualFs.ScopedHost(new NodeJsSyncHost(), normalize(process.cwd()));
    (async () => {
      const answers = [];
      for (const name of JSON.parse(process.argv[2])) {
        const tree = new HostTree(host);
        answers.push(await runner.runSchematic('feature', { name }, tree).then(
          () => tree.getDir('migrations').subfiles.at(-1),
          ({ message }) => message,
        ));
      }
      process.once('exit', () => process.stdout.write('\\n' + JSON.stringify(answers)));
    })();`;
  await writeFile(join(copy.path, 'try-names.cjs'), script);
  const printed = await copy.run('try-names.cjs', [JSON.stringify(names)]);
  return JSON.parse(printed.slice(printed.lastIndexOf('\n'))) as string[];
}

test('an unusable name is refused with a message that says what to take instead', async () => {
  const refusals: [name: string, sentence: string][] = [
    ['pets', 'src/pets exists. Remove it, or take another name.'],
    [
      'clients',
      'migrations/1795219260000-create-client-and-api-key.ts makes a table client already. Take another name.',
    ],
    ['pet-statuses', 'openapi.json has PetStatus already. Take another name.'],
    ['gift-box', "'gift-box' is no plural. Take gift-boxes."],
    [
      'equipment',
      "'equipment' has no singular of its own, which the class of one row needs. Take equipment-entries, for example.",
    ],
    ...['classes', 'lets', 'maps', 'promises', 'pages', 'names', 'databases'].map((name): [string, string] => [
      name,
      expect.stringMatching(
        new RegExp(`^'\\w+' means something else in TypeScript or in the generated code\\. Take store-${name}, for`),
      ) as string,
    ]),
    ...['../boxes', 'Boxes', 'gift_boxes', '2boxes', 'boxes-', '', 'b'.repeat(40) + 's'].map(
      (name): [string, string] => [
        name,
        expect.stringContaining(`'${name}' cannot name a feature. Take a plural`) as string,
      ],
    ),
  ];
  expect(await tryNames(refusals.map(([name]) => name))).toEqual(refusals.map(([, sentence]) => sentence));
});

test('a refused command writes nothing', async () => {
  const printed = await copy.run(NEST, ['generate', 'feature', 'gift-box']);
  expect(printed).toContain("Error: 'gift-box' is no plural. Take gift-boxes.");
  await writeFile(join(copy.path, 'test/api/gift-boxes.e2e-spec.ts'), '');
  const other = await copy.run(NEST, ['generate', 'feature', 'gift-boxes']);
  expect(other).toContain('Error: test/api/gift-boxes.e2e-spec.ts exists. Remove it, or take another name.');
  const files = await filesOf(copy);
  expect(files.filter((file) => !before.has(file))).toEqual(['test/api/gift-boxes.e2e-spec.ts']);
  expect(await copy.read('src/app.module.ts')).not.toContain('GiftBoxes');
  await rm(join(copy.path, 'test/api/gift-boxes.e2e-spec.ts'));
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
  for (const step of ['npm run generate', 'npm test -- gift-boxes', '--scopes gift-boxes:read,gift-boxes:write']) {
    expect(printed.slice(printed.indexOf('\nNext:'))).toContain(step);
  }
});

/** Adds the same member as the guide, with the guide's lines changed for the feature `unions`. */
async function addTheMemberOfTheGuide(): Promise<void> {
  const guide = (await copy.read('docs/extending.md')).split('### Make it yours\n')[1] ?? '';
  const block = (/```ts\n(.*?)```/s.exec(guide)?.[1] ?? '').replaceAll('order', 'union').replaceAll('Order', 'Union');
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
  await edit('src/unions/union.dto.ts', 'Int64Property, ', 'Int64Property, IntegerProperty, ');
  const spec = 'test/api/unions.e2e-spec.ts';
  await edit(spec, '{ name }', '{ name, totalCents: 1250 }');
  await edit(spec, "name: 'First' }]", "name: 'First', totalCents: 1250 }]");
  await edit(spec, "'name is required'", "'totalCents is required; name is required'");
}

test('compiler, linter, formatter and tests accept a generated feature, unchanged and with the member that the guide adds', async () => {
  await addTheMemberOfTheGuide();
  const changed = [...created, 'src/app.module.ts'];
  const types = { extends: './tsconfig.json', include: [...changed, 'src/**/*.d.ts', 'test/**/*.d.ts'] };
  await writeFile(join(copy.path, 'tsconfig.generated.json'), JSON.stringify(types));
  await copy.run('scripts/generate.js');
  await Promise.all([
    copy
      .run('node_modules/typescript/bin/tsc', ['--noEmit', '--project', 'tsconfig.generated.json'])
      .then(() => copy.run('node_modules/eslint/bin/eslint.js', changed))
      .then(() =>
        copy.run('node_modules/prettier/bin/prettier.cjs', [
          '--check',
          ...changed.filter((file) => !file.includes('union')),
        ]),
      ),
    copy
      .run('scripts/test.js', [
        'unit,any-engine,postgresql',
        ...['api/gift-boxes', 'api/unions', 'api/openapi', 'platform/migrations.e2e', 'import-rules', 'documentation'],
        '--maxWorkers=2',
      ])
      .then(() => copy.run('scripts/test.js', ['embedded', 'api/gift-boxes'])),
  ]);
});

test('the command migrate creates the table of a generated feature, and the service serves it', async () => {
  const cli = 'dist/src/cli.js';
  expect(await copy.run(cli, ['migrate'], database.ownerSettings)).toMatch(/CreateGiftBox\d{13}[^]*CreateUnion\d{13}/);
  const scopes = 'gift-boxes:read,gift-boxes:write';
  const key = await copy.run(
    cli,
    ['keys', 'create', '--client', 'shop', '--scopes', scopes, '--quiet'],
    database.ownerSettings,
  );
  const [apiKey] = /pets_\w{49}/.exec(key) ?? [];
  service = new ServiceProcess(database.settings, copy.path, { program: [join(copy.path, 'dist/src/main.js')] });
  const client = new HttpClient(await service.origin(), apiKey);
  const added = await client.post('/v1/gift-boxes', { name: 'First' });
  expect([added.status, added.json]).toEqual([201, { id: 1, name: 'First' }]);
  expect((await client.get('/v1/gift-boxes')).json).toEqual([added.json]);
});
