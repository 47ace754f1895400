import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { PoolClient } from 'pg';
import { UNAVAILABLE } from '#errors';
import { ServicePool } from './service-pool.js';

/** A message of PostgreSQL's protocol (PostgreSQL 18, section 54.7). */
function message(type: string, body: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.write(type);
  header.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([header, body]);
}
const AUTHENTICATED = message('R', Buffer.alloc(4));
const READY = message('Z', Buffer.from('I'));
const REFUSED = message('E', Buffer.from('SERROR\0C57014\0Mcanceling statement\0\0'));
const TERMINATED = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0'));

const SILENCE = Object.assign(new Error('The database does not respond'), { code: 'ETIMEDOUT' });

/** The server sends these bytes to each client that connects. */
let greeting: Buffer;
let server: Server;
let sockets: Socket[];
let pool: ServicePool;

beforeEach(async () => {
  greeting = Buffer.concat([AUTHENTICATED, READY]);
  sockets = [];
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(greeting));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  pool = new ServicePool({ host: '127.0.0.1', port, user: 'test', password: '', ssl: false, max: 2 });
  pool.on('error', () => undefined);
});
afterEach(async () => {
  sockets.forEach((socket) => socket.destroy());
  await pool.end();
  await new Promise((closed) => server.close(closed));
});

const refused = expect.objectContaining({ definition: UNAVAILABLE }) as Error;

test('a connection that breaks while it is handed out fails only its own statements', async () => {
  // All in one packet: pg-pool listens no more when the error is read, and the caller does not have the client yet.
  greeting = Buffer.concat([AUTHENTICATED, READY, TERMINATED]);
  const client = await pool.connect();
  await expect(client.query('SELECT')).rejects.toThrow('not queryable');
  client.release();
  expect(pool.totalCount).toBe(0);
});

test('a connection that has not ended its failed statement serves nobody, and is closed after a second', async () => {
  const client = await pool.connect();
  sockets[0]?.once('data', () => sockets[0]?.write(REFUSED));
  await expect(client.query('SELECT')).rejects.toThrow('canceling statement');
  client.release();
  const next = await pool.connect();
  expect([next === client, pool.totalCount]).toEqual([false, 2]);
  await once(sockets[0] as Socket, 'end');
  expect(pool.totalCount).toBe(1);
  next.release();
});

test('a silence fails statements in flight, and refuses new callers, with promises and with callbacks', async () => {
  const clients = [await pool.connect(), await pool.connect()];
  const inFlight = clients.map((client) => client.query('SELECT'));
  pool.setSilence(SILENCE);
  expect(await Promise.allSettled(inFlight)).toEqual([
    { status: 'rejected', reason: SILENCE },
    { status: 'rejected', reason: SILENCE },
  ]);
  await expect(pool.connect()).rejects.toEqual(refused);
  expect(await new Promise((resolve) => pool.connect(resolve))).toEqual(refused);
  clients.forEach((client) => client.release());
});

test('after a silence every connection is new, also one that was being opened for a caller who waited before it', async () => {
  (await pool.connect()).release();
  const [old] = sockets;
  // The server accepts the next connection and never answers.
  greeting = Buffer.alloc(0);
  const held = await pool.connect();
  const [opening, waiting] = [pool.connect(), pool.connect()];
  while (sockets.length < 2) await once(server, 'connection');
  pool.setSilence(SILENCE);
  await expect(opening).rejects.toMatchObject({ cause: SILENCE });
  held.release();
  while (sockets.length < 3) await once(server, 'connection');
  greeting = Buffer.concat([AUTHENTICATED, READY]);
  pool.setSilence(undefined);
  await expect(waiting).rejects.toMatchObject({ cause: SILENCE });
  const clients: PoolClient[] = [await pool.connect(), await pool.connect()];
  expect(sockets).toHaveLength(5);
  expect([old?.destroyed, pool.totalCount, pool.waitingCount]).toEqual([true, 2, 0]);
  clients.forEach((client) => client.release());
});

test('503 for every caller while a certificate cannot be read', async () => {
  const connectionString = 'postgresql://test@127.0.0.1/test?sslrootcert=/missing';
  const unreadable = new ServicePool({ connectionString, max: 1 });
  await Promise.all([1, 2, 3].map(() => expect(unreadable.connect()).rejects.toEqual(refused)));
  await unreadable.end();
});
