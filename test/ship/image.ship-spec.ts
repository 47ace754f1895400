import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { ServiceProcess } from '../support/service-process.js';
import { admittedPaths, assemble, commandOf, dockerfile, environmentOf } from './support/dockerfile.js';

/*
 * Builds the content of the image in a folder, without a container engine. `.ci/image` builds the image itself and runs
 * this file on it: IMAGE_ROOT is then the root of the image's file system.
 */

// The set-up installs all packages and builds the service: a minute and a half on an idle machine.
import.meta.jest.setTimeout(1_200_000);

const { IMAGE_ROOT } = process.env;

/** Bytes that the service adds to the base image. */
const LARGEST_SIZE = 80_000_000;

/** Root starts the service as the user of the image; other users start it as themselves. */
const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};

let target: string;
/** `/app` of the image. */
let app: string;
let database: TestDatabase;
const running: ServiceProcess[] = [];

beforeAll(async () => {
  target = mkdtempSync(join(tmpdir(), 'petstore-image-'));
  chmodSync(target, 0o755);
  app = join(IMAGE_ROOT ?? assemble(target), 'app');
  // A write below `app` fails from here on, for every user but root.
  if (IMAGE_ROOT === undefined) spawnSync('chmod', ['-R', 'a-w,a+rX', app]);
  database = await createEmptyTestDatabase();
});
afterAll(async () => {
  await database.drop();
  spawnSync('chmod', ['-R', 'u+w', target]);
  rmSync(target, { recursive: true });
});
afterEach(async () => {
  for (const service of running.splice(0)) await service.kill();
});

const [entry = '', ...entryArguments] = commandOf('ENTRYPOINT');

/** Starts the container's command with the environment of the image. */
function start(settings: Readonly<Record<string, string>>): ServiceProcess {
  const program = [...entryArguments, ...commandOf('CMD')];
  const service = new ServiceProcess({ ...environmentOf(), ...settings }, app, { program, ...USER });
  running.push(service);
  return service;
}

/** Runs another command of the image, and returns its standard output. */
function petstore(settings: Readonly<Record<string, string>>, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dist/src/cli.js', ...args], {
    ...USER,
    cwd: app,
    encoding: 'utf8',
    env: { ...environmentOf(), ...settings },
  });
  expect({ args, status, stderr }).toMatchObject({ status: 0 });
  return stdout;
}

/** The exit code of the health check of the image, for a service on this port. */
async function health(port: string): Promise<unknown> {
  const [, ...args] = commandOf('HEALTHCHECK');
  return (await once(spawn(process.execPath, args, { ...USER, cwd: app, env: { PORT: port } }), 'exit'))[0];
}

/** A folder that the user of the container may write to. */
function volume(): string {
  const directory = mkdtempSync(join(target, 'data-'));
  chmodSync(directory, 0o777);
  return directory;
}

function filesBelow(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries.filter((item) => item.isFile()).map((item) => join(item.parentPath, item.name));
}

test(`the service and its packages take less than ${LARGEST_SIZE / 1e6} MB`, () => {
  const size = filesBelow(app).reduce((sum, path) => sum + statSync(path).size, 0);
  expect(size).toBeLessThan(LARGEST_SIZE);
  expect(size).toBeGreaterThan(LARGEST_SIZE / 2);
});

test('the image contains no compiler and no package of the tests, and keeps the licence files of packages', () => {
  const names = ['typescript', 'jest', '@nestjs/microservices', '@types/node'];
  expect(names.filter((name) => existsSync(join(app, 'node_modules', name)))).toEqual([]);
  const licences = (modules: string): string[] =>
    filesBelow(modules).filter((path) => /\/licen[cs]e[^/]*$/i.test(path));
  expect(licences(join(app, 'node_modules')).length).toBeGreaterThan(150);
});

test('each package of package.json can be loaded', () => {
  const { dependencies } = JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')) as { dependencies: object };
  const script = Object.keys(dependencies).map((name) => `await import('${name}');`);
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script.join('\n')], {
    ...USER,
    cwd: app,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

describe('on PostgreSQL, for a user who may write nothing', () => {
  test('the image migrates, serves, is healthy, and exits with 0 after SIGTERM', async () => {
    const settings = { ...database.settings, DATA_DIR: '/nowhere' };
    petstore(database.ownerSettings, 'migrate');
    const key = petstore(settings, 'keys', 'create', '--client', 'image', '--quiet').trim();
    const service = start(settings);
    const origin = await service.origin();
    const { port } = new URL(origin);
    expect(await health(port)).toBe(0);

    const client = new HttpClient(origin, key);
    expect((await client.post('/v1/pets', { name: 'Rex', categoryId: 7 })).status).toBe(201);
    expect((await client.get('/v1/pets')).status).toBe(200);
    expect((await client.get('/health/ready')).status).toBe(200);
    const pages = ['/docs', '/docs/guide', '/docs/errors', '/openapi.json', '/openapi.yaml'];
    for (const path of pages) expect([path, (await client.get(path)).status]).toEqual([path, 200]);
    const assets = (await client.get('/docs')).text.matchAll(/(?:src|href)="([^"]*\/assets\/[^"]+)"/g);
    const paths = [...assets].map((match) => new URL(match[1] as string, `${origin}/docs`).pathname);
    expect(paths.join()).toContain('swagger-ui-bundle.js');
    for (const path of paths) expect([path, (await client.get(path)).status]).toEqual([path, 200]);

    expect(await service.stop('SIGTERM')).toBe(0);
    expect(await health(port)).toBe(1);
  });

  test('the image starts with REDIS_URL and two processes, and exits with 0 after SIGTERM', async () => {
    const service = start({ ...database.settings, REDIS_URL: 'redis://127.0.0.1:1', WEB_CONCURRENCY: '2' });
    await service.origin();
    expect(await service.stop('SIGTERM')).toBe(0);
  });
});

test('the image serves on the embedded engine, runs commands at the same time, and writes only to its volume', async () => {
  const data = join(volume(), 'petstore');
  const service = start({ DATA_DIR: data });
  const origin = await service.origin();
  const key = /pets_\w+/.exec(service.stderr)?.[0];
  petstore({ DATA_DIR: data }, 'seed', '--count', '3');
  const { json } = await new HttpClient(origin, key).get('/v1/pets');
  expect(json).toHaveLength(3);
  expect(await service.stop('SIGTERM')).toBe(0);
  expect(statSync(data).mode & 0o777).toBe(0o700);
});

describe('the Dockerfile', () => {
  const last = dockerfile().slice(dockerfile().findLastIndex(({ name }) => name === 'FROM'));

  test('runs the service as the process that gets SIGTERM, under a user who is not root', () => {
    expect([entry, ...entryArguments, ...commandOf('CMD')]).toEqual([
      'node',
      '--no-allocation-site-pretenuring',
      'dist/src/main.js',
    ]);
    expect(last.find(({ name }) => name === 'USER')?.text).toBe('1000:1000');
    expect(last.find(({ name }) => name === 'STOPSIGNAL')?.text).toBe('SIGTERM');
  });

  test('has no RUN in its last stage, so images for other processors can be built on this one', () => {
    expect(last.filter(({ name }) => name === 'RUN')).toEqual([]);
  });

  test('copies exactly the files that .dockerignore admits', () => {
    const copies = dockerfile().filter(({ name, text }) => name === 'COPY' && !text.includes('--from='));
    const sources = copies.flatMap(({ text }) => text.split(' ').slice(0, -1));
    expect(sources.sort()).toEqual(admittedPaths().sort());
  });
});
