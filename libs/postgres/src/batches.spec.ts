import { Logger } from '@nestjs/common';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { QueryFailedError } from 'typeorm';
import { UNAVAILABLE } from '#errors';
import { Batches } from './batches.js';

const { jest } = import.meta;

// Time passes by `jest.advanceTimersByTime` alone.
beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => void jest.useRealTimers());

const LIMITS = { size: 10, concurrency: 1, waiting: 1000, waitMs: 10_000 };

function refusal(message: string, code?: string): QueryFailedError {
  return new QueryFailedError('INSERT', [], Object.assign(new pg.DatabaseError(message, 0, 'error'), { code }));
}

/** A shared statement begins a turn of the event loop after the one before. */
const settled = (): Promise<void> => nextTurn().then(() => nextTurn());

/** Batches whose statements record their inputs. Each call of `release` completes the oldest statement. */
function controlled(limits: Partial<ConstructorParameters<typeof Batches>[1]> = {}) {
  const batches: number[][] = [];
  const releases: (() => void)[] = [];
  const execute = (inputs: readonly number[]): Promise<number[]> => {
    batches.push([...inputs]);
    return new Promise((resolve) => releases.push(() => resolve(inputs.map((input) => input * 2))));
  };
  const release = (): Promise<void> => {
    releases.shift()?.();
    return settled();
  };
  return { batches, release, queue: new Batches(execute, { ...LIMITS, ...limits }) };
}

test('a single input runs at once; inputs that wait together share a statement, and each gets its own output', async () => {
  const { batches, queue, release } = controlled();
  const first = queue.run(1);
  await Promise.resolve();
  expect(batches).toEqual([[1]]);
  const others = [2, 3, 4].map((input) => queue.run(input));
  await settled();
  expect(batches).toEqual([[1]]);
  await release();
  expect(batches).toEqual([[1], [2, 3, 4]]);
  await release();
  expect(await Promise.all([first, ...others])).toEqual([2, 4, 6, 8]);
});

test('inputs that wait with the same key are executed once; none joins a statement that has begun', async () => {
  const { batches, queue, release } = controlled();
  const run = (input: number): Promise<number> => queue.run(input, String(input));
  const answers = [run(1), run(1)];
  await settled();
  answers.push(run(1), run(2), run(1));
  await settled();
  await release();
  expect(batches).toEqual([[1], [1, 2]]);
  await release();
  expect(await Promise.all(answers)).toEqual([2, 2, 2, 4, 2]);
});

test('after an error of a key, its next input is executed', async () => {
  let calls = 0;
  const queue = new Batches<number, number>(() => Promise.reject(new Error(`call ${++calls}`)), LIMITS);
  await expect(queue.run(1, 'one')).rejects.toThrow('call 1');
  await expect(queue.run(1, 'one')).rejects.toThrow('call 2');
});

test('no statement exceeds its size', async () => {
  const { batches, queue, release } = controlled({ size: 3 });
  const answers = [1, 2, 3, 4].map((input) => queue.run(input));
  await settled();
  await release();
  await release();
  await Promise.all(answers);
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

test('at most as many statements as the limit run at the same time', async () => {
  const { batches, queue, release } = controlled({ size: 1, concurrency: 2 });
  const answers = [1, 2, 3].map((input) => queue.run(input));
  await settled();
  expect(batches).toEqual([[1], [2]]);
  await release();
  expect(batches).toEqual([[1], [2], [3]]);
  await release();
  await release();
  await Promise.all(answers);
});

describe('with followMs', () => {
  const FOLLOWING = { size: 3, concurrency: 2, followMs: 60_000 };

  test('inputs that arrive while a statement runs share the next one; a full batch starts at once', async () => {
    const { batches, queue, release } = controlled(FOLLOWING);
    const answers = [queue.run(1)];
    await settled();
    answers.push(queue.run(2), queue.run(3));
    await settled();
    expect(batches).toEqual([[1]]);
    answers.push(queue.run(4), queue.run(5));
    await settled();
    expect(batches).toEqual([[1], [2, 3, 4]]);
    await release();
    await release();
    await release();
    expect(await Promise.all(answers)).toEqual([2, 4, 6, 8, 10]);
  });

  test('after followMs another statement starts while a slow one runs', async () => {
    const { batches, queue, release } = controlled({ ...FOLLOWING, followMs: 20 });
    const first = queue.run(1);
    await settled();
    const second = queue.run(2);
    jest.advanceTimersByTime(19);
    await settled();
    expect(batches).toEqual([[1]]);
    jest.advanceTimersByTime(1);
    await settled();
    expect(batches).toEqual([[1], [2]]);
    await release();
    await release();
    expect(await Promise.all([first, second])).toEqual([2, 4]);
  });
});

test('a refused input gets its own error, and the other inputs of its statement succeed', async () => {
  const executed: number[][] = [];
  const queue = new Batches(async (inputs: readonly number[]) => {
    executed.push([...inputs]);
    await settled();
    if (inputs.includes(13)) throw refusal('13 is bad');
    return inputs;
  }, LIMITS);
  const outcomes = await Promise.allSettled([1, 13, 2].map((input) => queue.run(input)));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(executed).toEqual([[1, 13, 2], [1], [13], [2]]);
});

test.each([
  ['a failure that is no response of PostgreSQL', new Error('unknown outcome')],
  ['a statement that took too long', refusal('canceled', '57014')],
])('after %s, all inputs fail, and no statement is repeated', async (_, failure) => {
  let calls = 0;
  const queue = new Batches(() => {
    calls++;
    return Promise.reject(failure);
  }, LIMITS);
  const outcomes = await Promise.allSettled([1, 2, 3].map((input) => queue.run(input)));
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
  expect(calls).toBe(1);
});

test('503 at once when too many inputs wait', async () => {
  const { queue, release } = controlled({ size: 1, waiting: 2 });
  const answers = [queue.run(1)];
  await settled();
  answers.push(queue.run(2), queue.run(3));
  await expect(queue.run(4)).rejects.toMatchObject({ definition: UNAVAILABLE });
  for (let round = 0; round < 3; round++) await release();
  expect(await Promise.all(answers)).toEqual([2, 4, 6]);
});

test('503 for inputs that wait too long, although no other input arrives, and later inputs succeed', async () => {
  const { batches, queue, release } = controlled({ size: 1, waitMs: 50 });
  const [begun, waiting] = [1, 2].map((input) => queue.run(input));
  await settled();
  jest.advanceTimersByTime(50);
  await expect(waiting).rejects.toMatchObject({ definition: UNAVAILABLE });
  const later = queue.run(3);
  await release();
  expect(await begun).toBe(2);
  await release();
  expect(await later).toBe(6);
  expect(batches).toEqual([[1], [3]]);
});

test('503 for inputs that cannot run alone in time after their shared statement was refused', async () => {
  const executed: number[][] = [];
  const queue = new Batches(
    async (inputs: readonly number[]) => {
      executed.push([...inputs]);
      if (inputs.length > 1) throw refusal('one of them is bad');
      await settled();
      jest.advanceTimersByTime(51);
      return inputs;
    },
    { ...LIMITS, waitMs: 50 },
  );
  const outcomes = await Promise.allSettled([1, 2, 3].map((input) => queue.run(input)));
  expect(outcomes).toMatchObject([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { definition: UNAVAILABLE } },
    { status: 'rejected', reason: { definition: UNAVAILABLE } },
  ]);
  expect(executed).toEqual([[1, 2, 3], [1]]);
});

test('a form that the engine does not support is tried once, reported once and counted, and inputs run alone for ten minutes', async () => {
  const executed: number[][] = [];
  const queue = new Batches(async (inputs: readonly number[]) => {
    executed.push([...inputs]);
    await settled();
    if (inputs.length > 1) throw refusal('cannot push down this subquery', '0A000');
    return inputs;
  }, LIMITS);
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const before = Batches.refusals;
  const runAll = (inputs: number[]): Promise<number[]> => Promise.all(inputs.map((input) => queue.run(input)));
  expect(await runAll([1, 2, 3])).toEqual([1, 2, 3]);
  expect(await runAll([4, 5, 6])).toEqual([4, 5, 6]);
  expect(executed).toEqual([[1, 2, 3], [1], [2], [3], [4], [5], [6]]);
  jest.advanceTimersByTime(600_000);
  expect(await runAll([7, 8])).toEqual([7, 8]);
  expect(executed.slice(7)).toEqual([[7, 8], [7], [8]]);
  expect(Batches.refusals - before).toBe(2);
  expect(warn.mock.calls).toEqual([[expect.stringMatching(/each gets its own: cannot push down this subquery$/)]]);
  warn.mockRestore();
});
