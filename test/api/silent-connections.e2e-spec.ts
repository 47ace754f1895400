import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTestApp, type TestApp } from '../support/app.js';
import { until } from '../support/until.js';

/*
 * Connections on which nothing has been sent, as load balancers and browsers open them in advance. Times in ms: a limit that
 * ends a connection too early is much shorter than KEEP_ALIVE.
 */
const HEADERS = 500;
const KEEP_ALIVE = 4_000;
/** Longest time in ms that a limit may be late: Node checks the first two every 500 ms, and adds 1 s to the last. */
const LATE = 1_500;

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({
    settings: { KEEP_ALIVE_TIMEOUT_MS: String(KEEP_ALIVE), REQUEST_TIMEOUT_MS: '2000' },
    limits: { headersTimeoutMs: HEADERS, writeTimeoutMs: 1_500 },
  });
});
afterAll(() => app.close());

const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
const PET = '{"name":"Rex","categoryId":7}';
const post = (): string =>
  `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.apiKey}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${PET.length}\r\n\r\n${PET}`;

interface Client {
  readonly socket: Socket;
  /** All that the server has sent. */
  readonly text: () => string;
  /** The time in ms from the connection to its end; undefined while it is open. */
  readonly lived: () => number | undefined;
}

async function open(port = app.port): Promise<Client> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  let text = '';
  let lived: number | undefined;
  socket.on('data', (chunk: string) => (text += chunk)).on('error', () => undefined);
  await once(socket, 'connect');
  const begin = performance.now();
  socket.once('close', () => (lived = performance.now() - begin));
  return { socket, text: () => text, lived: () => lived };
}

const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

/** What the log says of requests, and what the metric counts. */
async function traces(): Promise<unknown> {
  const key = await app.createApiKey('metrics:read');
  const { text } = await app.client.get('/metrics', { apiKey: key });
  const failed = text.split('\n').filter((line) => /^petstore_http_request.*status="(4\d\d|aborted)"/.test(line));
  return [app.log.requests.filter(({ status }) => Number(status) >= 400).length, failed];
}

test('it lives for KEEP_ALIVE_TIMEOUT_MS, and closes without a response and without a trace', async () => {
  const before = await traces();
  const client = await open();
  await until(() => client.lived() !== undefined);
  expect(client.text()).toBe('');
  expect(client.lived()).toBeGreaterThan(KEEP_ALIVE - 100);
  expect(client.lived()).toBeLessThan(KEEP_ALIVE + LATE);
  expect(await traces()).toEqual(before);
});

test('blank lines do not prolong it', async () => {
  const client = await open();
  await sleep(HEADERS + LATE);
  const trickle = setInterval(() => client.socket.write('\r\n'), 100);
  await until(() => client.lived() !== undefined);
  clearInterval(trickle);
  expect(client.text()).toBe('');
  expect(client.lived()).toBeLessThan(HEADERS + KEEP_ALIVE + LATE);
});

test.each([
  ['in one piece', (request: string) => [request]],
  ['in pieces', (request: string) => [request.slice(0, 1), request.slice(1, 70), request.slice(70)]],
])('a request is served whenever it is sent, %s', async (_, piecesOf) => {
  const client = await open();
  await sleep(KEEP_ALIVE - 1_000);
  for (const piece of piecesOf(post())) {
    client.socket.write(piece);
    await sleep(50);
  }
  await until(() => client.text() !== '');
  expect(statuses(client.text())).toEqual([201]);
  // And the connection is an ordinary one from then on: two requests ahead, then silence.
  await sleep(1_000);
  client.socket.write(LIVE + LIVE);
  await until(() => statuses(client.text()).length === 3);
  expect(statuses(client.text())).toEqual([201, 200, 200]);
  client.socket.destroy();
});

test('blank lines after a response do not shorten the life of the connection', async () => {
  const client = await open();
  client.socket.write(`${LIVE}\r\n`);
  await sleep(KEEP_ALIVE - 1_000);
  client.socket.write(LIVE);
  await until(() => statuses(client.text()).length === 2);
  expect(client.lived()).toBeUndefined();
  client.socket.destroy();
});

test.each(['G', 'GET /v1/pets HTTP/1.1\r\nHost: x\r\n'])(
  '408 is for a request that has begun: its header section has its time from the first byte (%j)',
  async (bytes) => {
    const client = await open();
    const silent = 1_500;
    await sleep(silent);
    client.socket.write(bytes);
    await until(() => client.lived() !== undefined);
    expect(statuses(client.text())).toEqual([408]);
    expect(client.lived()).toBeGreaterThan(silent + HEADERS - 100);
    expect(client.lived()).toBeLessThan(silent + HEADERS + LATE);
  },
);

test('the time of the whole request begins with its first byte', async () => {
  const client = await open();
  await sleep(2_500);
  client.socket.write(post().slice(0, -5));
  await sleep(1_000);
  client.socket.write(PET.slice(-5));
  await until(() => client.text() !== '');
  expect(statuses(client.text())).toEqual([201]);
  client.socket.destroy();
});

test.each([
  ['bytes that are no HTTP', '\x16\x03\x01\x02\x00\x01\r\n\r\n', [400]],
  ['a request, and the end of the client', LIVE, [200]],
  ['the end of the client alone', '', []],
])('%s after a silence', async (_, bytes, right) => {
  const client = await open();
  await sleep(1_000);
  client.socket.end(bytes, 'latin1');
  await until(() => client.lived() !== undefined);
  expect(statuses(client.text())).toEqual(right);
  expect(client.lived()).toBeLessThan(2_500);
});

test('a client that resets a silent connection is no error', async () => {
  const client = await open();
  client.socket.resetAndDestroy();
  await sleep(100);
  expect((await app.client.get('/health/live')).status).toBe(200);
  expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
});

test('silent connections do not delay a shutdown', async () => {
  const other = await createTestApp({ settings: { SHUTDOWN_TIMEOUT_MS: '20000' } });
  const clients = [await open(other.port), await open(other.port)];
  await sleep(100);
  const begin = performance.now();
  await other.close();
  expect(performance.now() - begin).toBeLessThan(5_000);
  expect(clients.map(({ text }) => text())).toEqual(['', '']);
});

test('at the limit of connections a new one is dropped, and the others are served', async () => {
  const limit = 20;
  const full = await createTestApp({ limits: { maxConnections: limit } });
  const clients: Client[] = [];
  for (let count = 0; count < limit; count++) clients.push(await open(full.port));
  const dropped = await open(full.port);
  await until(() => dropped.lived() !== undefined);
  expect(dropped.text()).toBe('');
  for (const { socket } of clients) socket.write(LIVE);
  await until(() => clients.every(({ text }) => statuses(text())[0] === 200));
  expect(full.log.text).toMatch(/beyond the limit of 20\./);
  for (const { socket } of clients) socket.destroy();
  await full.close();
});
