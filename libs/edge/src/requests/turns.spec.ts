import { TURN_MS } from './server-limits.js';
import { type ClientId, Turns } from './turns.js';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The time of the tests, which only work takes. */
let time = 0;
const now = (): number => time;

function work(ms: number): void {
  time += ms;
}

/** Adds pieces of work that take a whole turn, and record their client. */
function adding(turns: Turns, done: ClientId[]) {
  return (client: ClientId, count: number): void => {
    for (let index = 0; index < count; index++) {
      turns.wait(client, () => {
        done.push(client);
        work(TURN_MS);
      });
    }
  };
}

test('work begins at once until the time of the turn is used up, and again in the next turn', async () => {
  const turns = new Turns(now);
  expect([turns.mayBegin(), turns.mayBegin()]).toEqual([true, true]);
  work(TURN_MS);
  expect(turns.mayBegin()).toBe(false);
  // The first one may still belong to this turn.
  await nextTurn();
  await nextTurn();
  expect(turns.mayBegin()).toBe(true);
});

test('clients take turns, one piece of work each, whoever came first; those without a known key are one client', async () => {
  const turns = new Turns(now);
  const done: ClientId[] = [];
  turns.mayBegin();
  const add = adding(turns, done);
  add(1n, 4);
  add(undefined, 2);
  add(2n, 1);
  for (let turn = 0; turn < 8; turn++) await nextTurn();
  expect(done).toEqual([1n, undefined, 2n, 1n, undefined, 1n, 1n]);
  expect(turns.mayBegin()).toBe(true);
});

test('in a turn, no work begins after its time is used up; short work shares a turn', async () => {
  const turns = new Turns(now);
  const done: ClientId[] = [];
  turns.mayBegin();
  adding(turns, done)(1n, 2);
  await nextTurn();
  expect(done).toEqual([1n]);
  for (let index = 0; index < 5; index++) turns.wait(2n, () => done.push(2n));
  await nextTurn();
  await nextTurn();
  expect(done.filter((client) => client === 2n)).toHaveLength(5);
});

test('what comes later does not overtake work that waits', () => {
  const turns = new Turns(now);
  turns.mayBegin();
  turns.wait(1n, () => undefined);
  expect(turns.mayBegin()).toBe(false);
});

test('timers and a clock that a test has replaced leave turns as they are', () => {
  import.meta.jest.useFakeTimers();
  const isFirst = new Turns().mayBegin();
  import.meta.jest.useRealTimers();
  expect(isFirst).toBe(true);
});

test('work that throws after all does not keep the rest waiting', async () => {
  const { jest } = import.meta;
  jest.useFakeTimers({ doNotFake: ['nextTick', 'performance', 'queueMicrotask'] });
  const turns = new Turns(now);
  const done: ClientId[] = [];
  turns.wait(1n, () => {
    throw new Error('not expected');
  });
  turns.wait(2n, () => done.push(2n));
  // The error leaves the callback of setImmediate, as it does in a process, which may go on.
  expect(() => jest.runAllTimers()).toThrow('not expected');
  jest.useRealTimers();
  // The time of the turn may be used up.
  await nextTurn();
  await nextTurn();
  expect(done).toEqual([2n]);
});
