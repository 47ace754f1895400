import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { AcceptQueue, MANY_CONNECTIONS, MAX_ACCEPTED_FIRST } from './accept-queue.js';

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

test('a request is served at once if connections are few or none was just accepted', () => {
  const few = queueOf(MANY_CONNECTIONS - 1);
  few.accept();
  few.arrive('among few');
  const many = queueOf(MANY_CONNECTIONS);
  many.arrive('while none is accepted');
  expect([...few.served, ...many.served]).toEqual(['among few', 'while none is accepted']);
});

test('requests wait while each turn of the event loop accepts a connection, and keep their order', async () => {
  const { served, accept, arrive } = queueOf(MANY_CONNECTIONS);
  for (const name of ['one', 'two', 'three']) {
    accept();
    arrive(name);
    await turn();
    expect(served).toEqual([]);
  }
  await turn();
  expect(served).toEqual(['one', 'two', 'three']);
  arrive('four');
  expect(served).toHaveLength(4);
});

test('requests are served after MAX_ACCEPTED_FIRST connections, even if further connections arrive without end', async () => {
  const { served, accept, arrive } = queueOf(MANY_CONNECTIONS);
  for (let accepted = 1; accepted <= 3 * MAX_ACCEPTED_FIRST; accepted++) {
    accept();
    if (accepted % MAX_ACCEPTED_FIRST === 1) arrive('a request');
    await turn();
    expect(served).toHaveLength(Math.floor(accepted / MAX_ACCEPTED_FIRST));
  }
});
