import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestApp, type TestApp } from '../../../test/support/app.js';
import { blocksOf, ROOT } from './samples.js';

/*
 * The package is installed from the running service into an empty folder, as people do it. Needs the registry of npm, or its
 * cache, for the dependency of the package.
 */

let app: TestApp;
let directory: string;

beforeAll(async () => {
  const port = await freePort();
  app = await createTestApp({ settings: { PORT: port, PUBLIC_BASE_URL: `http://127.0.0.1:${port}/v1` } });
});
afterAll(() => app.close());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'petstore-install-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

/** Runs commands as people do: without the variables of npm and Jest that run this test. Returns their output. */
async function run(commands: string): Promise<string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS$|JEST_)/.test(name));
  const env = { ...Object.fromEntries(own), npm_config_prefer_offline: 'true', API_KEY: app.apiKey };
  try {
    return (await promisify(execFile)('bash', ['-ec', commands], { cwd: directory, env })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${commands}\n${stdout}${stderr}`, { cause: error });
  }
}

/** The command that the guide of the service shows. */
async function installByGuide(): Promise<void> {
  const { text } = await app.client.get('/docs/guide', { apiKey: null });
  const command = /<code>(npm install [^<]*client\.tgz)<\/code>/.exec(text)?.[1] ?? '';
  expect(command).toBe(`npm install ${app.origin.replace('localhost', '127.0.0.1')}/docs/client.tgz`);
  await run(command);
}

const USE = `
  const client = new PetStoreClient({ baseUrl: '${'${BASE}'}', apiKey: process.env.API_KEY });
  const error = await client.createPet({ name: '', categoryId: 7n }).catch((error) => error);
  const { categoryId } = await client.createPet({ name: 'Rex', categoryId: 9007199254740993n });`;

const use = (): string => USE.replace('${BASE}', app.config.publicBaseUrl);
const SHOW = 'console.log(error instanceof PetStoreError, error.status, categoryId);';
const SHOWN = 'true 400 9007199254740993n\n';

test('by the command of the guide: works as an ES module, as CommonJS, and in Jest as it comes', async () => {
  await installByGuide();
  const names = '{ PetStoreClient, PetStoreError }';
  await writeFile(join(directory, 'pets.mjs'), `import ${names} from '@petstore-service/client';${use()}${SHOW}`);
  expect(await run('node pets.mjs')).toBe(SHOWN);
  const load = `const ${names} = require('@petstore-service/client');`;
  await writeFile(join(directory, 'pets.cjs'), `${load} (async () => {${use()}${SHOW} })();`);
  expect(await run('node pets.cjs')).toBe(SHOWN);

  const check =
    'expect([error instanceof PetStoreError, error.status, categoryId]).toEqual([true, 400, 9007199254740993n]);';
  await writeFile(join(directory, 'pets.test.js'), `${load} test('pets', async () => {${use()}${check} });`);
  await run(`node '${ROOT}/node_modules/jest/bin/jest.js' --rootDir .`);
}, 120_000);

test('has types for CommonJS and ES modules, under the strictest options of TypeScript', async () => {
  await installByGuide();
  const code = `
    import { type CreatePetOptions, type NewPet, PetStoreClient, PetStoreError } from '@petstore-service/client';
    const client = new PetStoreClient({ baseUrl: '${app.config.publicBaseUrl}', apiKey: 'none', fetch: undefined });
    const pet: NewPet = { name: 'Rex', categoryId: 7n, status: undefined };
    const options: CreatePetOptions = { idempotencyKey: undefined, signal: undefined };
    const page = { next: undefined, limit: undefined, status: undefined, ifNoneMatch: undefined };
    void client.listPetsPage(page).catch(() => undefined);
    void client.createPet(pet, options).catch((error) => console.log(error instanceof PetStoreError, error.code));`;
  const strict = '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --lib es2022,dom --target es2022';
  for (const [file = '', module, program] of [
    ['pets.ts', 'node16', 'pets.js'],
    ['pets.mts', 'nodenext', 'pets.mjs'],
  ]) {
    await writeFile(join(directory, file), code);
    await run(`node '${ROOT}/node_modules/typescript/bin/tsc' --module ${module} ${strict} ${file}`);
    expect(await run(`node ${program}`)).toBe('true invalid_api_key\n');
  }
}, 120_000);

test('by the commands of the README', async () => {
  const blocks = await blocksOf('clients/typescript/README.md', 'sh');
  expect(blocks.length).toBe(2);
  for (const block of blocks) {
    await run(`rm -rf ./* && ${block.replaceAll('http://localhost:3000', app.origin)}`);
    await run(`node -e "require('@petstore-service/client')"`);
  }
}, 120_000);

test('the same sources make the same package, which npm publishes nowhere', async () => {
  const before = await run(`sha256sum '${ROOT}/dist/client.tgz'`);
  await run(
    `cp -r '${ROOT}/clients' '${ROOT}/scripts' . && ln -s '${ROOT}/node_modules' && node scripts/pack-client.js`,
  );
  expect(await run('sha256sum dist/client.tgz')).toBe(before.replace(`${ROOT}/`, ''));
  const manifest = await run(`tar --extract --to-stdout --file dist/client.tgz package/package.json`);
  expect(JSON.parse(manifest)).toMatchObject({ private: true });
}, 120_000);
