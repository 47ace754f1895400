import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { RepositoryCopy } from '../support/repository-copy.js';
import { ServiceProcess } from '../support/service-process.js';

/* `nest generate resource` in a copy of the repository: compiler, linter and formatter accept the resource, and it serves requests. */

import.meta.jest.setTimeout(300_000);

const NEST = 'node_modules/@nestjs/cli/bin/nest.js';
const BOOTSTRAP_API_KEY = 'bootstrap-key-of-the-tests';

let copy: RepositoryCopy;
let database: TestDatabase;
let service: ServiceProcess | undefined;

beforeAll(async () => {
  copy = await RepositoryCopy.create();
  database = await createTestDatabase();
});
afterAll(async () => {
  await service?.kill();
  await database.drop();
  await copy.remove();
});

/** Adds shutdown hooks that log the signal to a module. */
async function addHooks(path: string): Promise<void> {
  const hooks = ['beforeApplicationShutdown', 'onApplicationShutdown'].map(
    (hook) => `${hook}(signal?: string) { new Logger('Hooks').log(\`${hook}: \${signal}\`); }`,
  );
  const text = (await copy.read(path))
    .replace('{ Module }', '{ Logger, Module }')
    .replace('Module {}', `Module {\n${hooks.join('\n')}\n}`);
  await writeFile(join(copy.path, path), text);
}

test('two generated resources compile, pass linter and formatter, and serve requests', async () => {
  for (const name of ['gadgets', 'gizmos']) {
    await copy.run(NEST, ['generate', 'resource', name, '--type', 'rest', '--crud']);
  }
  expect(await copy.read('src/app.module.ts')).toContain('\n    GadgetsModule,\n    GizmosModule,\n  ],\n');
  const generated = ['src/gadgets', 'src/gizmos', 'src/app.module.ts'];
  await copy.run('node_modules/prettier/bin/prettier.cjs', ['--check', ...generated]);
  await copy.run('node_modules/eslint/bin/eslint.js', generated);
  // With a rule in its class, the service checks the bodies of this resource.
  const dto = 'src/gizmos/dto/create-gizmo.dto.ts';
  await writeFile(
    join(copy.path, dto),
    "import { IsString } from 'class-validator';\nexport class CreateGizmoDto { @IsString() name: string; }\n",
  );
  await addHooks('src/gadgets/gadgets.module.ts');
  await copy.run('scripts/build-if-needed.js');

  const settings = { ...database.settings, BOOTSTRAP_API_KEY };
  service = new ServiceProcess(settings, copy.path, { program: [join(copy.path, 'dist/src/main.js')] });
  const client = new HttpClient(await service.origin(), BOOTSTRAP_API_KEY);
  const answers = [
    await client.post('/v1/gadgets', { any: 1 }),
    await client.get('/v1/gadgets'),
    await client.get('/v1/gizmos/7'),
    await client.send('PATCH', '/v1/gizmos/7', { body: { name: 'Ann' } }),
    await client.send('DELETE', '/v1/gizmos/7'),
    await client.post('/v1/gizmos', { name: 7 }),
    await client.get('/v1/gadgets', { apiKey: null }),
  ];
  expect(answers.map(({ status, text }) => [status, status < 400 ? text : (JSON.parse(text) as object)])).toEqual([
    [201, 'This action adds a new gadget'],
    [200, 'This action returns all gadgets'],
    [200, 'This action returns a #7 gizmo'],
    [200, 'This action updates a #7 gizmo'],
    [200, 'This action removes a #7 gizmo'],
    [400, { code: 'validation_failed', message: 'name must be a string', status: 400 }],
    [401, expect.objectContaining({ code: 'missing_api_key' })],
  ]);
  const document = (await client.get('/openapi.json')).text;
  // The first resource gets the short name, unless a feature of this repository already has it.
  for (const id of ['(GadgetsController_)?findAll', 'GizmosController_findAll', 'listPets']) {
    expect(document).toMatch(new RegExp(`"operationId": "${id}"`));
  }
});

test('shutdown hooks of modules get the signal', async () => {
  expect(await service?.stop('SIGINT')).toBe(0);
  expect(service?.stdout).toContain('"msg":"beforeApplicationShutdown: SIGINT"');
  expect(service?.stdout).toContain('"msg":"onApplicationShutdown: SIGINT"');
});
