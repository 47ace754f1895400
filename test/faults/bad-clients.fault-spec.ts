import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceProcess } from '../support/service-process.js';
import { type LoadRequest, send } from '../support/load.js';
import { useOwnServer } from '../support/own-database.js';
import { residentMiB } from '../support/witness.js';

/*
 * Broken, slow and hostile clients. The service closes each of their connections within a time limit, spends a bounded
 * amount of memory on each, reads no request in two ways, and serves the other clients all the time.
 */

const API_KEY = 'bootstrap-key-of-the-fault-tests';
const REQUEST_TIMEOUT_MS = 2_500;
const REQUESTS_IN_FLIGHT = 100;
/** Requests that a client pipelines; those of all silent clients together stay below MAX_PIPELINED_REQUESTS. */
const PIPELINED = 40;

const LIST: LoadRequest = { method: 'GET', path: '/v1/pets?limit=1' };
const AUTHORIZED = `Host: x\r\nAuthorization: Bearer ${API_KEY}\r\n`;
const PET = '{"name":"Rex","categoryId":7}';
const POST = `POST /v1/pets HTTP/1.1\r\n${AUTHORIZED}Content-Type: application/json\r\n`;

const own = useOwnServer();
let service: ServiceProcess;
let origin: string;
let port: number;
const sockets: Socket[] = [];

beforeAll(async () => {
  service = new ServiceProcess(
    {
      DATABASE_URL: own.url,
      BOOTSTRAP_API_KEY: API_KEY,
      RATE_LIMIT_PER_MINUTE: '0',
      REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
      KEEP_ALIVE_TIMEOUT_MS: '20000',
      MAX_REQUESTS_IN_FLIGHT: String(REQUESTS_IN_FLIGHT),
    },
    tmpdir(),
  );
  origin = await service.origin();
  port = Number(new URL(origin).port);
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  // ERROR in the log means that a person must act; no client may cause it.
  expect(service.stdout).not.toMatch(/"level":(50|60)/);
});
afterAll(() => service.kill());

/** Sends a request several times at the same moment; all must succeed. */
async function expectServed(request: LoadRequest, count: number, status = 200): Promise<void> {
  const calls = Array.from({ length: count }, () => send(request, { origin, apiKey: API_KEY }));
  expect((await Promise.all(calls)).map((outcome) => outcome.status)).toEqual(calls.map(() => status));
}

/** Checks that no place in flight was lost: the largest allowed number of requests is served at the same time. */
const expectAllPlaces = (): Promise<void> => expectServed(LIST, REQUESTS_IN_FLIGHT);

/** Opens a raw connection, on which a test can send what no HTTP client sends. */
async function open(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Opens connections, 100 at a time: the kernel drops connections that do not fit into the queue of the listening socket. */
async function openMany(count: number): Promise<Socket[]> {
  const opened: Socket[] = [];
  while (opened.length < count) {
    opened.push(...(await Promise.all(Array.from({ length: Math.min(100, count - opened.length) }, open))));
  }
  return opened;
}

/** Sends a byte every 100 ms until the connection ends, at most 25 s. Returns response and duration. */
async function trickle(socket: Socket, bytes: string): Promise<{ answer: string; ms: number }> {
  const startedAt = performance.now();
  let answer = '';
  let isOpen = true;
  socket.setEncoding('latin1').on('data', (text: string) => (answer += text));
  socket.once('end', () => (isOpen = false)).once('close', () => (isOpen = false));
  for (let index = 0; isOpen && performance.now() - startedAt < 25_000; index++) {
    socket.write(bytes.charAt(index % bytes.length));
    await sleep(100);
  }
  return { answer, ms: performance.now() - startedAt };
}

/** Sends other requests until `during` settles. All must succeed. Returns the value of `during`. */
async function othersAreServed<Value>(during: Promise<Value>): Promise<Value> {
  let isOver = false;
  void during.finally(() => (isOver = true));
  do {
    await expectServed(LIST, 1);
    await sleep(50);
  } while (!isOver);
  return during;
}

const memory = (): number => residentMiB(service.pid);

/** The memory after the service has allocated that for responses of any size, so that later growth has another cause. */
async function warmMemory(): Promise<number> {
  const list: LoadRequest = { method: 'GET', path: '/v1/pets?limit=100' };
  for (let round = 0; round < 10; round++) await expectServed(list, REQUESTS_IN_FLIGHT / 2);
  return memory();
}

/** The largest memory for some time, or until a condition holds. */
async function peakMemory(ms: number, isOver = (): boolean => false): Promise<number> {
  let peak = 0;
  for (const deadline = Date.now() + ms; Date.now() < deadline && !isOver(); await sleep(50))
    peak = Math.max(peak, memory());
  return peak;
}

test('slow header sections and bodies get 408 and a closed connection, and take no place in flight', async () => {
  const clients = 1.5 * REQUESTS_IN_FLIGHT;
  const heads = (await openMany(clients)).map((socket) =>
    trickle(socket, `GET /v1/pets HTTP/1.1\r\nX: ${'a'.repeat(500)}`),
  );
  const bodies: Promise<{ answer: string; ms: number }>[] = [];
  while (bodies.length < clients) {
    // A request is in flight until the service has checked its key, so not too many may arrive at once.
    for (const socket of await openMany(REQUESTS_IN_FLIGHT / 2)) {
      socket.write(`${POST}Content-Length: 60000\r\n\r\n`);
      bodies.push(trickle(socket, `{"name":"${'a'.repeat(500)}`));
    }
    await send(LIST, { origin, apiKey: API_KEY });
  }
  const [ofHeads, ofBodies] = await othersAreServed(Promise.all([Promise.all(heads), Promise.all(bodies)]));
  for (const { answer } of [...ofHeads, ...ofBodies]) {
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*\r\nConnection: close\r\n[^]*"code":"request_timeout"/);
  }
  expect(Math.min(...ofBodies.map(({ ms }) => ms))).toBeGreaterThan(REQUEST_TIMEOUT_MS - 200);
  await expectAllPlaces();
}, 60_000);

test('clients that pipeline requests and never read are disconnected, and cost a bounded amount of memory', async () => {
  const name = '\u{1f40e}'.repeat(255);
  const create: LoadRequest = { method: 'POST', path: '/v1/pets', body: JSON.stringify({ name, categoryId: 1 }) };
  await expectServed(create, 100, 201);
  // Each response has a hundred of these: over 100 000 bytes.
  const requests = `GET /v1/pets?limit=100 HTTP/1.1\r\n${AUTHORIZED}\r\n`.repeat(PIPELINED);
  const silent = 50;
  const before = await warmMemory();
  // Each takes one to two times the 30 s after which such a connection is cut; the second needs no more memory.
  for (let round = 0; round < 2; round++) {
    const clients = await openMany(silent);
    const earlier = abortedRequests();
    for (const socket of clients) socket.pause().write(requests);
    const peak = await othersAreServed(peakMemory(90_000, () => abortedRequests() - earlier >= silent));
    expect(abortedRequests() - earlier).toBe(silent);
    expect(peak - before).toBeLessThan(150);
  }
}, 300_000);

/** Number of requests in the log whose responses could not be delivered. */
function abortedRequests(): number {
  return service.stdout.split('"aborted":true').length - 1;
}

test('a client that reads slowly gets its whole response', async () => {
  const socket = await open();
  let length = 0;
  socket.write(`GET /v1/pets?limit=100 HTTP/1.1\r\n${AUTHORIZED}Connection: close\r\n\r\n`);
  socket.on('data', (chunk: Buffer) => {
    length += chunk.length;
    socket.pause();
    setTimeout(() => socket.resume(), 100);
  });
  await once(socket, 'end');
  expect(length).toBeGreaterThan(100_000);
});

test('5,000 silent connections cost less than 150 KiB each, and are closed', async () => {
  const count = 5_000;
  const before = await warmMemory();
  const ends = (await openMany(count)).map((socket) => once(socket.resume(), 'close'));
  await othersAreServed(sleep(300));
  expect(((memory() - before) * 1_024) / count).toBeLessThan(150);
  await Promise.all(ends);
}, 60_000);

test('a connection reset during a body or behind broken bytes is no error, and frees its place in flight', async () => {
  const clients = await openMany(10 * REQUESTS_IN_FLIGHT);
  await Promise.all(
    clients.map(async (socket, index) => {
      const body = `${POST}Content-Length: ${PET.length}\r\n\r\n${PET.slice(0, index % PET.length)}`;
      socket.write(index % 2 ? body : `${index % 4 ? 'BROKEN' : 'CONNECT a:1 HTTP/1.1'}\r\n\r\n`);
      await sleep(index % 100);
      socket.resetAndDestroy();
    }),
  );
  await expectAllPlaces();
});

test('clients that pipeline megabytes of requests and do not read cost less than 400 MiB, and the others are served', async () => {
  const requests = `GET /v1/pets?limit=1 HTTP/1.1\r\n${AUTHORIZED}\r\n`.repeat(20_000);
  const before = await warmMemory();
  const clients = await openMany(300);
  // First 40 large responses that nobody reads: more than the buffers of the operating system hold.
  for (const socket of clients) {
    socket.pause();
    socket.write(`GET /openapi.json HTTP/1.1\r\n${AUTHORIZED}\r\n`.repeat(40) + requests);
  }
  expect((await othersAreServed(peakMemory(1_000))) - before).toBeLessThan(400);
}, 60_000);
