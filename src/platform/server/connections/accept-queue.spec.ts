import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { AcceptQueue, MANY_CONNECTIONS, MAX_DRAINING_MS } from './accept-queue.js';

function queueOf(connections: number) {
  const server = new EventEmitter() as Server;
  const queue = new AcceptQueue(server, { size: connections });
  const served: string[] = [];
  return {
    served,
    accept: () => server.emit('connection'),
    arrive: (name: string) => queue.whenDrained(() => served.push(name)),
  };
}

test('a request is served at once among few connections, and while none is accepted', () => {
  const few = queueOf(MANY_CONNECTIONS - 1);
  few.accept();
  few.arrive('among few');
  const many = queueOf(MANY_CONNECTIONS);
  many.arrive('while none is accepted');
  expect([...few.served, ...many.served]).toEqual(['among few', 'while none is accepted']);
});

test('requests wait while connections are accepted, and keep their order', async () => {
  const { served, accept, arrive } = queueOf(MANY_CONNECTIONS);
  accept();
  for (const name of ['one', 'two', 'three']) arrive(name);
  expect(served).toEqual([]);
  await sleep(2 * MAX_DRAINING_MS);
  expect(served).toEqual(['one', 'two', 'three']);
  arrive('four');
  expect(served).toHaveLength(4);
});

test('requests are served after MAX_DRAINING_MS, also when connections are accepted without end', async () => {
  const { served, accept, arrive } = queueOf(MANY_CONNECTIONS);
  for (let round = 1; round <= 3; round++) {
    const beganAt = performance.now();
    accept();
    arrive('a request');
    while (served.length < round && performance.now() < beganAt + 5_000) {
      accept();
      await turn();
    }
    expect(served).toHaveLength(round);
    expect(performance.now() - beganAt).toBeGreaterThanOrEqual(MAX_DRAINING_MS);
    // The connection of the last turn has begun another wait.
    await sleep(2 * MAX_DRAINING_MS);
  }
});
