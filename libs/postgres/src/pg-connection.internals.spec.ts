import { duplexPair } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg, { type ClientBase, type PoolClient } from 'pg';
import { copyRows, destroySocket, transactionStatusOf, unansweredStatement } from './pg-connection.internals.js';

/** Turns of the event loop that a message in memory needs at most. */
const TURNS = 10;

/** A message of PostgreSQL: its type, and a body in Latin-1. */
function message(type: string, body: string): Buffer {
  const head = Buffer.alloc(5, type, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, Buffer.from(body, 'latin1')]);
}

test('what pg does on a connection in memory, whose server is written here', async () => {
  const seen: string[] = [];
  const [socket, server] = duplexPair();
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  };
  const send = async (...messages: Buffer[]): Promise<void> => {
    server.write(Buffer.concat(messages));
    await settle();
  };
  const stream = Object.assign(socket, {
    ...{ setNoDelay: ignore, ref: ignore, unref: ignore },
    connect: () => setImmediate(() => socket.emit('connect')),
  });
  let sent: Buffer = Buffer.alloc(0);
  server.on('data', (bytes: Buffer) => (sent = bytes));
  const onConnect = async (opened: ClientBase): Promise<void> => {
    await nextTurn();
    seen.push('onConnect');
    opened.on('error', ignore);
  };
  const options = { onConnect, max: 1, ssl: false, user: 'toys', stream: () => stream };
  const pool = new pg.Pool(options);
  let client: PoolClient | undefined;
  pool.connect().then(
    (leased) => {
      client = leased;
      seen.push('leased');
    },
    (error: Error) => seen.push(error.message),
  );
  await settle();
  await send(message('R', '\0\0\0\0'), message('Z', 'I'));
  const leased = client as unknown as PoolClient;
  const copy = (rows?: Buffer[]): void =>
    void copyRows(leased, 'COPY toys', rows).then(
      (received) => seen.push(`copied ${received.join()}`),
      (error: Error) => seen.push(error.message),
    );
  copy([Buffer.from('a\n')]);
  await settle();
  seen.push(sent.toString('latin1').replace(/[^ -~]+/g, '|'));
  seen.push(unansweredStatement(leased) ? 'unanswered' : 'answered');
  await send(message('G', '\0\0\0'), message('C', 'COPY 1\0'), message('Z', 'T'));
  seen.push(unansweredStatement(leased) ? 'unanswered' : 'answered');
  copy();
  await send(
    message('H', '\0\0\0'),
    message('d', 'b\n'),
    message('d', 'c\n'),
    message('c', ''),
    message('C', 'COPY 2\0'),
    message('Z', 'T'),
  );
  copy();
  await send(message('E', 'Mrefused\0\0'));
  transactionStatusOf(leased).then(
    (status) => seen.push(`status ${status}`),
    (error: Error) => seen.push(error.message),
  );
  await settle();
  await send(message('Z', 'E'));
  copy();
  await settle();
  destroySocket(leased, new Error('closed'));
  await settle();
  leased.release(true);
  expect(seen).toEqual([
    ...['onConnect', 'leased', 'Q|COPY toys|d|a|c|', 'unanswered', 'copied ', 'answered'],
    ...['copied b\n,c\n', 'refused', 'status E', 'closed'],
  ]);
});

function ignore(): void {}
