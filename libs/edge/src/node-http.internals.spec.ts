import { createServer, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, duplexPair } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { steerUpgrades, stopListening } from './node-http.internals.js';

/** Turns of the event loop that a request in memory needs at most. */
const TURNS = 10;

test('what Node does on connections in memory, without a port and without a timer', async () => {
  const seen: string[] = [];
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  };
  class Request extends IncomingMessage {}
  steerUpgrades(Request, ({ headers }) => headers.upgrade === 'websocket');
  const server = createServer({ IncomingMessage: Request });
  const open = (): [client: Duplex, socket: Socket] => {
    const [client, socket] = duplexPair() as [Duplex, Socket];
    server.emit('connection', socket);
    return [client, socket];
  };
  const ask = async (client: Duplex, fields: string): Promise<void> => {
    client.write(`GET / HTTP/1.1\r\nHost: toys.example\r\n${fields}\r\n\r\n`);
    await settle();
  };
  const nameOf = ({ headers }: IncomingMessage): string => String(headers.upgrade ?? headers['x-name']);
  server.on('upgrade', (request) => seen.push(`${nameOf(request)}: upgrade`));
  server.on('request', (request, response) => {
    seen.push(`${nameOf(request)}: request`);
    response.end();
  });
  // From then on Node knows which connections are idle.
  server.emit('listening');
  const [client, socket] = open();
  await ask(client, 'Connection: Upgrade\r\nUpgrade: toy');
  const [other, taken] = open();
  await ask(other, 'Connection: Upgrade\r\nUpgrade: websocket');
  const [kept, idle] = open();
  kept.once('data', () => seen.push('idle: response'));
  await ask(kept, 'X-Name: idle');
  stopListening(server, () => undefined);
  await settle();
  seen.push(idle.destroyed ? 'closed' : 'still open');
  for (const each of [socket, taken, idle]) each.destroy();
  server.close();
  expect(seen).toEqual(['toy: request', 'websocket: upgrade', 'idle: request', 'idle: response', 'still open']);
});
