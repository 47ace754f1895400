import { executionAsyncResource } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { joinWrites, ticks } from './joined-writes.internals.js';

/** Sends a response, and returns its bytes and the names of the system's writes. */
async function answer(
  send: (response: ServerResponse, writes: string[]) => unknown,
  prepare: (socket: Socket) => void,
): Promise<{ bytes: string; writes: string[] }> {
  const writes: string[] = [];
  const server = createServer((_request, response) => {
    response.sendDate = false;
    send(response, writes);
  });
  server.on('connection', (socket: Socket) => {
    prepare(socket);
    const handle = (socket as unknown as { _handle: Record<string, (...parameters: unknown[]) => unknown> })._handle;
    for (const name of ['writeBuffer', 'writeUtf8String', 'writeLatin1String', 'writev']) {
      const write = handle[name] as (...parameters: unknown[]) => unknown;
      handle[name] = function (...parameters) {
        writes.push(name);
        return write.apply(this, parameters);
      };
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = new Socket().connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const bytes = Buffer.concat((await socket.toArray()) as Buffer[]).toString('latin1');
  await new Promise((resolve) => server.close(resolve));
  return { bytes, writes };
}

test.each<[body: string, send: (response: ServerResponse) => unknown, writes: string[] | undefined]>([
  ['a text', (response) => response.end('a body with é'), ['writeUtf8String']],
  ['latin1', (response) => response.end('é', 'latin1'), ['writeLatin1String']],
  ['none', (response) => response.end(), ['writeLatin1String']],
  ['bytes', (response) => response.end(Buffer.from('é')), undefined],
  ['an empty text', (response) => response.end(''), undefined],
  ['cut characters', (response) => void (response.write('\ud83d'), response.end('\udc15')), undefined],
  ['pieces', (response) => void (response.write('é'), response.write(Buffer.from('b')), response.end('c')), undefined],
  [
    'an empty piece',
    (response) =>
      void (response.setHeader('Content-Length', 2), response.write('a'), response.write(''), response.end('b')),
    undefined,
  ],
  ['a long text', (response) => response.end('é'.repeat(1_000_000)), undefined],
  ['before the end of its connection', (response) => response.end('a').req.socket.destroy(), ['writeUtf8String']],
])('a response has the bytes of an ordinary one, and a text needs one write: %s', async (_, send, writes) => {
  const ordinary = await answer(send, () => undefined);
  const joined = await answer(send, joinWrites);
  expect(joined.bytes).toBe(ordinary.bytes);
  if (writes) expect(joined.writes).toEqual(writes);
});

test('a response is written at the end of its turn, behind the other work of that turn', async () => {
  const send = async (response: ServerResponse, order: string[]): Promise<void> => {
    await Promise.resolve();
    response.end('a');
    queueMicrotask(() => order.push('other work'));
  };
  expect((await answer(send, joinWrites)).writes).toEqual(['other work', 'writeUtf8String']);
});

test('the tick that is kept is one of those that Node makes', async () => {
  const tick = await new Promise<object>((resolve) => process.nextTick(() => resolve(executionAsyncResource())));
  const [kept = {}] = ticks;
  expect(kept).toHaveProperty('callback');
  expect(Reflect.ownKeys(tick)).toEqual(expect.arrayContaining(Reflect.ownKeys(kept)));
});
