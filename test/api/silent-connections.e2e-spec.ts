import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTestApp, type TestApp } from '../support/app.js';
import { openClient, type RawClient, statusesOf as statuses } from '../support/raw-request.js';
import { until } from '../support/until.js';

/*
 * Connections on which nothing has been sent, as load balancers and browsers open them in advance. What has its own time limit
 * is compared with another connection's limit, which is over: no test measures.
 */
let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({
    settings: { REQUEST_TIMEOUT_MS: '1000' },
    limits: { headersTimeoutMs: 500, writeTimeoutMs: 300 },
  });
});
afterAll(() => app.close());

const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
const PET = '{"name":"Rex","categoryId":7}';
const post = (): string =>
  `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app.apiKey}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${PET.length}\r\n\r\n${PET}`;

const open = (port = app.port): Promise<RawClient> => openClient(port);
const closed = ({ socket }: RawClient): Promise<true> => until(() => socket.closed);

/** Waits until the time for a header section is over for every connection that is open now: it is for a later one. */
async function headersTime(): Promise<void> {
  const later = await open();
  later.socket.write('G');
  await closed(later);
  expect(statuses(later.text())).toEqual([408]);
}

/** What the log says of requests, and what the metric counts. */
async function traces(app: TestApp): Promise<unknown> {
  const key = await app.createApiKey({ scopes: ['metrics:read'] });
  const { text } = await app.client.get('/metrics', { apiKey: key });
  const failed = text.split('\n').filter((line) => /^petstore_http_request.*status="(4\d\d|aborted)"/.test(line));
  return [app.log.requests.filter(({ status }) => Number(status) >= 400).length, failed];
}

test('KEEP_ALIVE_TIMEOUT_MS after its last response, or without a response and a trace, a connection is closed', async () => {
  const hasty = await createTestApp({ settings: { KEEP_ALIVE_TIMEOUT_MS: '2000' }, limits: { headersTimeoutMs: 100 } });
  const before = await traces(hasty);
  const clients = [await openClient(hasty.port, LIVE), await open(hasty.port)];
  await Promise.all(clients.map(closed));
  expect(clients.map(({ text }) => text())).toEqual([
    expect.stringMatching(/^HTTP\/1\.1 200 [^]*\r\nConnection: keep-alive\r\n/),
    '',
  ]);
  expect(await traces(hasty)).toEqual(before);
  await hasty.close();
});

test.each([
  ['in one piece', (request: string) => [request]],
  ['in pieces', (request: string) => [request.slice(0, 1), request.slice(1, 70), request.slice(70)]],
])('a request is served whenever it is sent, %s', async (_, piecesOf) => {
  const client = await open();
  await headersTime();
  for (const piece of piecesOf(post())) {
    client.socket.write(piece);
    await sleep(20);
  }
  await until(() => client.text() !== '');
  expect(statuses(client.text())).toEqual([201]);
  // And the connection is an ordinary one from then on: silence, two requests ahead.
  await headersTime();
  client.socket.write(LIVE + LIVE);
  await until(() => statuses(client.text()).length === 3);
  expect(statuses(client.text())).toEqual([201, 200, 200]);
  client.socket.destroy();
});

test('blank lines after a response do not shorten the life of the connection', async () => {
  const client = await open();
  client.socket.write(`${LIVE}\r\n`);
  await headersTime();
  client.socket.write(LIVE);
  await until(() => statuses(client.text()).length === 2);
  expect(client.socket.closed).toBe(false);
  client.socket.destroy();
});

test.each([
  ['the first byte', () => 'G'],
  ['a part of the header section', () => 'GET /v1/pets HTTP/1.1\r\nHost: x\r\n'],
  ['a part of the body', () => post().slice(0, -5)],
])('408 is for a request that has begun, and its time begins with its first byte: %s', async (_, bytes) => {
  const client = await open();
  await headersTime();
  const server = app.nest.getHttpServer() as Server;
  const refused: unknown[] = [];
  const note = (_: Error, { remotePort }: Socket): unknown => refused.push(remotePort);
  server.on('clientError', note);
  // It has connected later, but its request begins earlier.
  const other = await open();
  other.socket.write(bytes());
  expect((await app.client.get('/health/live')).status).toBe(200);
  client.socket.write(bytes());
  const inOrder = [other, client].map(({ socket }) => socket.localPort);
  await Promise.all([other, client].map(closed)).finally(() => server.off('clientError', note));
  expect([other, client].map(({ text }) => statuses(text()))).toEqual([[408], [408]]);
  expect(refused).toEqual(inOrder);
});

test.each([
  ['bytes that are no HTTP', '\x16\x03\x01\x02\x00\x01\r\n\r\n', [400]],
  ['a request, and the end of the client', LIVE, [200]],
  ['the end of the client alone', '', []],
])('%s after a silence', async (_, bytes, right) => {
  const client = await open();
  await headersTime();
  client.socket.end(bytes, 'latin1');
  await closed(client);
  expect(statuses(client.text())).toEqual(right);
});

test('a client that resets a silent connection is no error', async () => {
  const accepted = once(app.nest.getHttpServer() as Server, 'connection') as Promise<[Socket]>;
  const client = await open();
  const [connection] = await accepted;
  client.socket.resetAndDestroy();
  await until(() => connection.closed);
  expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
});

test('silent connections do not delay a shutdown', async () => {
  const other = await createTestApp();
  const clients = [await open(other.port), await open(other.port)];
  await other.client.get('/health/live');
  await other.close();
  expect(other.log.text).not.toContain('Cutting');
  expect(clients.map(({ text }) => text())).toEqual(['', '']);
});
