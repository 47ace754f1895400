import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.js';
import { HttpClient } from '../support/http-client.js';
import { send } from '../support/load.js';
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

/** A user id that nobody else has, so that all of the user's files come from the service. It needs no entry in /etc/passwd. */
const UID = 54_321;
/** Root starts the service as that user; other users start it as themselves. */
const USER = process.getuid?.() === 0 ? { uid: UID, gid: UID } : {};

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

function filesBelow(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries.filter((item) => item.isFile()).map((item) => join(item.parentPath, item.name));
}

test(`the image takes less than ${LARGEST_SIZE / 1e6} MB, without compiler and packages of the tests, and keeps licence files`, () => {
  const files = filesBelow(app);
  const size = files.reduce((sum, path) => sum + statSync(path).size, 0);
  expect(size).toBeLessThan(LARGEST_SIZE);
  const names = ['typescript', 'jest', '@nestjs/microservices', '@types/node'];
  expect(names.filter((name) => existsSync(join(app, 'node_modules', name)))).toEqual([]);
  expect(files.filter((path) => /\/licen[cs]e[^/]*$/i.test(path)).length).toBeGreaterThan(150);
});

function packageJson(): { dependencies: object; scripts: { start: string } } {
  return JSON.parse(readFileSync(join(app, 'package.json'), 'utf8')) as ReturnType<typeof packageJson>;
}

test('each package of package.json can be loaded', () => {
  const { dependencies } = packageJson();
  expect(Object.keys(dependencies)).toContain('@opentelemetry/sdk-node');
  const script = Object.keys(dependencies).map((name) => `await import('${name}');`);
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script.join('\n')], {
    ...USER,
    cwd: app,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test('on PostgreSQL, for a user who may write nothing, the image migrates, serves, is healthy, and exits with 0 after SIGTERM', async () => {
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
  const pages = ['/docs', '/docs/guide', '/docs/deprecations', '/docs/client.tgz', '/openapi.json', '/openapi.yaml'];
  for (const path of pages) expect([path, (await client.get(path)).status]).toEqual([path, 200]);
  const assets = (await client.get('/docs')).text.matchAll(/(?:src|href)="([^"]*\/assets\/[^"]+)"/g);
  const paths = [...assets].map((match) => new URL(match[1] as string, `${origin}/docs`).pathname);
  expect(paths.join()).toContain('swagger-ui-bundle.js');
  for (const path of paths) expect([path, (await client.get(path)).status]).toEqual([path, 200]);

  expect(await service.stop('SIGTERM')).toBe(0);
  expect(await health(port)).toBe(1);
});

/** Local ports of the TCP connections of a process, from /proc (Linux only). */
function localPortsOfConnections(pid: number): Set<number> {
  const sockets = readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? [];
    } catch {
      // The descriptor was closed in the meantime.
      return [];
    }
  });
  const ESTABLISHED = '01';
  const lines = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, 'utf8').split('\n'));
  const own = lines
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === ESTABLISHED && sockets.includes(fields[9] ?? ''));
  return new Set(own.map((fields) => parseInt(fields[1]?.split(':')[1] ?? '', 16)));
}

test('on the embedded engine the image serves, runs commands meanwhile, opens no connection, and writes only to its volume', async () => {
  const marker = join(target, 'marker');
  writeFileSync(marker, '');
  const volume = mkdtempSync(join(target, 'data-'));
  chmodSync(volume, 0o777);
  const data = join(volume, 'petstore');
  const service = start({ DATA_DIR: data });
  const origin = await service.origin();
  const key = /pets_\w+/.exec(service.stderr)?.[0] ?? '';
  petstore({ DATA_DIR: data }, 'seed', '--count', '3');
  const { json } = await new HttpClient(origin, key).get('/v1/pets');
  expect(json).toHaveLength(3);
  if (existsSync('/proc/net/tcp')) {
    const agent = new Agent({ keepAlive: true });
    await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey: key }, agent);
    // Our own connection shows that connections are found. There must be no other.
    expect(localPortsOfConnections(service.pid)).toEqual(new Set([Number(new URL(origin).port)]));
    agent.destroy();
  }
  expect(await service.stop('SIGTERM')).toBe(0);
  expect([statSync(data).mode & 0o777, statSync(join(data, 'postgres')).mode & 0o777]).toEqual([0o700, 0o700]);
  expect(service.stdout).not.toContain(key);

  const [below, ...owner] = USER.uid === undefined ? [target] : ['/', '-uid', String(UID)];
  const search = ['-xdev', '-newer', marker, ...owner, '-type', 'f'];
  const { stdout } = spawnSync('find', [below, ...search], { encoding: 'utf8', maxBuffer: 64 * 2 ** 20 });
  const written = stdout.split('\n').filter((path) => path !== '');
  expect(written.length).toBeGreaterThan(10);
  expect(written.filter((path) => !path.startsWith(data))).toEqual([]);
});

describe('the Dockerfile', () => {
  const last = dockerfile().slice(dockerfile().findLastIndex(({ name }) => name === 'FROM'));

  test('runs the service as the process that gets SIGTERM, under a user who is not root', () => {
    const [, started] = /exec (.*)$/.exec(packageJson().scripts.start) ?? [];
    expect([entry, ...entryArguments, ...commandOf('CMD')].join(' ')).toBe(started);
    expect(last.find(({ name }) => name === 'USER')?.text).toBe('1000:1000');
    expect(last.find(({ name }) => name === 'STOPSIGNAL')?.text).toBe('SIGTERM');
    // Without RUN in its last stage, images for other processors can be built on this one.
    expect(last.map(({ name }) => name)).not.toContain('RUN');
  });

  test('copies exactly the files that .dockerignore admits', () => {
    const copies = dockerfile().filter(({ name, text }) => name === 'COPY' && !text.includes('--from='));
    const sources = copies.flatMap(({ text }) => text.split(' ').slice(0, -1));
    expect(sources.sort()).toEqual(admittedPaths().sort());
  });
});
