import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { rawRequest, statusesOf } from '../support/raw-request.js';
import { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';

/*
 * No response and no listener of a module ends the process, or takes a connection out of order. Each service is a process of its
 * own, which serves at the end: `test/support/fragile-service.ts`.
 */

const LOADER = new URL('../support/register-typescript.js', import.meta.url).href;
const programOf = (file: string, ...words: string[]): string[] => [
  ...['--import', LOADER, join(import.meta.dirname, '../support', file)],
  ...words,
];
const KEY = 'bootstrap-key-of-the-tests';

let database: TestDatabase;
let home: string;
let service: ServiceProcess;
let port: number;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'petstore-alive-'));
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
  await rm(home, { recursive: true, force: true });
});

async function start(transport: string): Promise<void> {
  const settings = { ...database.settings, BOOTSTRAP_API_KEY: KEY, SHUTDOWN_TIMEOUT_MS: '5000' };
  service = new ServiceProcess(settings, home, { program: programOf('fragile-service.ts', transport) });
  port = Number(new URL(await service.origin()).port);
}

const request = (target: string, ...fields: string[]): string =>
  [`GET ${target} HTTP/1.1`, 'Host: x', ...fields, '', ''].join('\r\n');
const PETS = request('/v1/pets?limit=1', `Authorization: Bearer ${KEY}`);
const LAST = request('/health/live', 'Connection: close');

describe('modules that answer in ways of their own', () => {
  beforeAll(() => start('none'));
  afterAll(async () => expect(await service.stop('SIGTERM')).toBe(0));

  const errors = (): unknown[] => service.stdout.match(/^\{.*"level":50,/gm) ?? [];

  /** Sends a request, which is one ERROR, and, on the same connection if it is left open, one with a key. Returns what came. */
  async function ask(path: string, { method = 'GET', version = '1.1' } = {}): Promise<string> {
    const before = errors().length;
    const first = request(`/v1/test-fragile/${path}`).replace('GET', method).replace('HTTP/1.1', `HTTP/${version}`);
    const received = await rawRequest(port, first + PETS + LAST);
    expect(service.isRunning).toBe(true);
    await until(() => errors().length > before);
    expect(errors()).toHaveLength(before + 1);
    return received;
  }

  test.each([
    ['a status message that HTTP cannot carry', 'message', {}, 500, 'internal_error'],
    ['one with a line feed, of a handler that writes by itself', 'lines', {}, 500, 'internal_error'],
    ['one of an error', 'message-of-error', {}, 409, 'fragile_sold'],
    ['one of a file', 'message-of-file', {}, 500, 'internal_error'],
    ['one of `writeHead`', 'message-of-head', {}, 500, 'internal_error'],
    ['a Trailer of a HEAD', 'trailer', { method: 'HEAD' }, 500, undefined],
    ['a Trailer of a file of a HEAD', 'trailer-of-file', { method: 'HEAD' }, 500, undefined],
    ['a Trailer of a 204', 'trailer-204', {}, 500, 'internal_error'],
    ['a Trailer of a 304', 'trailer-304', {}, 500, 'internal_error'],
    ['details in a circle', 'details', {}, 500, 'internal_error'],
    ['a filter that rejects', 'rejecting', {}, 500, 'internal_error'],
    ['a filter that throws', 'throwing', {}, 500, 'internal_error'],
  ] as const)('%s: an Error body, one ERROR, and the connection goes on', async (_, path, options, status, code) => {
    const received = await ask(path, options);
    expect(statusesOf(received)).toEqual([status, 200, 200]);
    const [head = '', body = ''] = received.split('\r\n\r\n', 2);
    expect(head).toMatch(/^X-Request-Id: /im);
    expect(head).not.toMatch(/^(Trailer|ETag):/im);
    if (code === undefined) expect(body).toMatch(/^HTTP\/1\.1 200 OK/);
    else expect(body).toContain(`{"code":"${code}",`);
  });

  test.each(['trailer', 'trailer-of-file'])('a Trailer of HTTP/1.0: an Error body and one ERROR: %s', async (path) => {
    const received = await ask(path, { version: '1.0' });
    expect(received).toMatch(/^HTTP\/1\.1 500 [^]+"code":"internal_error"/);
    expect(statusesOf(received)).toEqual([500]);
  });

  test('a Trailer of a chunked response is sent', async () => {
    const received = await rawRequest(port, request('/v1/test-fragile/trailer') + LAST);
    expect(received).toMatch(/^HTTP\/1\.1 200 [^]+\r\nTrailer: X-Sum\r\n[^]+X-Sum: 1\r\n/);
  });

  test('a filter that rejects when the response has begun: the connection is cut, one ERROR', async () => {
    const received = await ask('rejecting-late');
    expect(statusesOf(received)).toEqual([409]);
    expect(received).not.toMatch(/\r\n0\r\n/);
  });

  /* A listener of a module takes requests before the platform. */

  test('what a listener answers before the platform is its own, and the connection keeps its order', async () => {
    const slow = request('/v1/test-fragile/slow');
    const received = await rawRequest(port, slow + request('/taken') + PETS + request('/taken') + LAST);
    expect(statusesOf(received)).toEqual([200, 202, 200, 202, 200]);
    const [, taken = ''] = received.split('\r\n\r\nslow');
    expect(taken).toMatch(
      /^HTTP\/1\.1 202 Accepted\r\nContent-Type: text\/html\r\nDate: .+\r\nConnection: keep-alive\r\n/,
    );
    expect(taken.split('\r\n\r\n', 1)[0]).not.toMatch(/cache-control|vary|x-request-id/i);
  });

  test('a listener may answer, and let others hear of the request', async () => {
    const received = await rawRequest(port, request('/answered') + PETS + LAST);
    expect(statusesOf(received)).toEqual([200, 200, 200]);
  });

  test('a broken body of a request that a listener has taken ends the connection, and nothing is written in between', async () => {
    const broken = request('/taken', 'Transfer-Encoding: chunked').replace('GET', 'POST') + 'zz\r\n';
    expect(await rawRequest(port, broken)).toBe('');
    expect(service.isRunning).toBe(true);
  });

  test('a stop ends idle connections on which a listener has answered, at once', async () => {
    const received = rawRequest(port, request('/taken'), { until: 'never' });
    await rawRequest(port, request('/taken'), { until: 'taken' });
    expect(await service.stop('SIGTERM')).toBe(0);
    expect(await received).toMatch(/^HTTP\/1\.1 202/);
    expect(service.stdout).not.toContain('Cutting');
  });
});

describe.each(['socket.io', 'ws'])('a gateway of %s', (transport) => {
  beforeAll(() => start(transport));
  afterAll(async () => expect(await service.stop('SIGTERM')).toBe(0));

  test('requests of its path, and others on the same connection', async () => {
    const polling = request(transport === 'ws' ? '/news' : '/socket.io/?EIO=4&transport=polling');
    const received = await rawRequest(port, polling + PETS + polling + PETS + LAST);
    const own = transport === 'ws' ? 404 : 200;
    expect(statusesOf(received)).toEqual([own, 200, own, 200, 200]);
    expect(service.isRunning).toBe(true);
  });

  test('WebSockets', async () => {
    const path = transport === 'ws' ? '/news' : '/socket.io/?EIO=4&transport=websocket';
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`);
    const messages: string[] = [];
    client.on('message', (data: Buffer) => messages.push(data.toString()));
    client.on('open', () => transport === 'ws' && client.send('{"event":"ping"}'));
    await until(() => messages.length > 0);
    expect(messages[0]).toMatch(transport === 'ws' ? /pong/ : /^0\{"sid":/);
    client.close();
    expect(statusesOf(await rawRequest(port, PETS + LAST))).toEqual([200, 200]);
  });
});

/* No function makes an application that answers without a key: `test/support/other-starts.ts`. */

async function run(way: string): Promise<[code: number | null, output: string]> {
  const other = new ServiceProcess(database.settings, home, { program: programOf('other-starts.ts', way) });
  const code = await other.ended;
  return [code, other.stdout + other.stderr];
}

test.each([
  'NestFactory.create',
  'NestFactory.create of entities',
  'NestFactory.createApplicationContext',
  'Test.createTestingModule',
  'NestFactory.create after createApplication',
])('%s fails, and names the functions to call', async (way) => {
  const [code, output] = await run(way);
  expect(output).toContain(
    'Nothing would ask for API keys: only startService and createApplication make an application',
  );
  expect(output).toMatch(/runCommands its commands, and createTestApp its tests\. For a script, createApplication/);
  expect(output).not.toContain('made');
  expect(code).toBe(1);
});

test('a script works with the providers of the application, and ends', async () => {
  const [code, output] = await run('script');
  expect(output).toContain('found 0 pets');
  expect(output).toMatch(/^made$/m);
  expect(code).toBe(0);
});
