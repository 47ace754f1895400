import { ApiError } from '../../errors/api-error.js';
import { UNAVAILABLE } from '../../errors/error-catalogue.js';
import pg from 'pg';
import { Batches } from './batches.js';

const LIMITS = { size: 10, concurrency: 1, waiting: 1000, waitMs: 10_000 };

/** An `execute` that records its batches and answers when it is told to. */
function controlled() {
  const batches: number[][] = [];
  const releases: (() => void)[] = [];
  const execute = (inputs: readonly number[]): Promise<number[]> => {
    batches.push([...inputs]);
    return new Promise((resolve) => releases.push(() => resolve(inputs.map((input) => input * 2))));
  };
  return { batches, execute, release: () => releases.shift()?.() };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

test('a lone request goes at once, and alone', async () => {
  const { batches, execute, release } = controlled();
  const answer = new Batches(execute, LIMITS).run(21);
  await Promise.resolve();
  expect(batches).toEqual([[21]]);
  release();
  expect(await answer).toBe(42);
});

test('those that wait together go together, each with its own answer', async () => {
  const { batches, execute, release } = controlled();
  const line = new Batches(execute, LIMITS);
  const first = line.run(1);
  await settled();
  const others = [2, 3, 4].map((input) => line.run(input));
  await settled();
  expect(batches).toEqual([[1]]);
  release();
  await settled();
  expect(batches).toEqual([[1], [2, 3, 4]]);
  release();
  expect(await Promise.all([first, ...others])).toEqual([2, 4, 6, 8]);
});

test('no request joins a statement that has begun, and none is larger than its limit', async () => {
  const { batches, execute, release } = controlled();
  const line = new Batches(execute, { ...LIMITS, size: 3 });
  const answers = Array.from({ length: 8 }, (_, input) => line.run(input));
  for (let round = 0; round < 4; round++) {
    await settled();
    release();
  }
  await Promise.all(answers);
  expect(batches).toEqual([
    [0, 1, 2],
    [3, 4, 5],
    [6, 7],
  ]);
});

test('no more statements run at a time than the limit', async () => {
  const { batches, execute, release } = controlled();
  const line = new Batches(execute, { ...LIMITS, size: 1, concurrency: 2 });
  const answers = [1, 2, 3].map((input) => line.run(input));
  await settled();
  expect(batches).toEqual([[1], [2]]);
  release();
  await settled();
  expect(batches).toEqual([[1], [2], [3]]);
  release();
  release();
  await Promise.all(answers);
});

describe('with a time to follow', () => {
  const FOLLOWING = { ...LIMITS, size: 3, concurrency: 2, followMs: 60_000 };

  test('those who come while a statement runs share the next one', async () => {
    const { batches, execute, release } = controlled();
    const line = new Batches(execute, FOLLOWING);
    const first = line.run(1);
    await settled();
    const others = [2, 3].map((input) => line.run(input));
    await settled();
    expect(batches).toEqual([[1]]);
    release();
    await settled();
    expect(batches).toEqual([[1], [2, 3]]);
    release();
    expect(await Promise.all([first, ...others])).toEqual([2, 4, 6]);
  });

  test('another statement begins beside the one that runs when as many wait as one serves', async () => {
    const { batches, execute, release } = controlled();
    const line = new Batches(execute, FOLLOWING);
    const first = line.run(1);
    await settled();
    const others = [2, 3, 4, 5].map((input) => line.run(input));
    await settled();
    expect(batches).toEqual([[1], [2, 3, 4]]);
    release();
    release();
    await settled();
    release();
    expect(await Promise.all([first, ...others])).toEqual([2, 4, 6, 8, 10]);
  });

  test('a statement that takes its time keeps nobody longer', async () => {
    const { batches, execute, release } = controlled();
    const line = new Batches(execute, { ...FOLLOWING, followMs: 20 });
    const first = line.run(1);
    await settled();
    const second = line.run(2);
    while (batches.length < 2) await settled();
    expect(batches).toEqual([[1], [2]]);
    release();
    release();
    expect(await Promise.all([first, second])).toEqual([2, 4]);
  });
});

test('a bad one among several gets its own error, and never fails its neighbours', async () => {
  const executed: number[][] = [];
  const line = new Batches(async (inputs: readonly number[]) => {
    executed.push([...inputs]);
    await settled();
    if (inputs.includes(13)) throw new pg.DatabaseError('13 is bad', 0, 'error');
    return inputs;
  }, LIMITS);
  const outcomes = await Promise.allSettled([1, 13, 2].map((input) => line.run(input)));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(executed).toEqual([[1, 13, 2], [1], [13], [2]]);
});

test.each([
  ['the database is away', new ApiError(UNAVAILABLE, 'away')],
  ['it failed in a way that nobody has foreseen', new Error('who knows what was done')],
])('when %s, all hear it, and nothing is asked again', async (_, failure) => {
  let calls = 0;
  const line = new Batches(() => {
    calls++;
    return Promise.reject(failure);
  }, LIMITS);
  const outcomes = await Promise.allSettled([1, 2, 3].map((input) => line.run(input)));
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
  expect(calls).toBe(1);
});

test('503 at once when too many wait', async () => {
  const { execute, release } = controlled();
  const line = new Batches(execute, { ...LIMITS, size: 1, waiting: 2 });
  const answers = [line.run(1)];
  await settled();
  answers.push(line.run(2), line.run(3));
  expect(() => line.run(4)).toThrow(expect.objectContaining({ definition: UNAVAILABLE }) as Error);
  for (let round = 0; round < 3; round++) {
    release();
    await settled();
  }
  expect(await Promise.all(answers)).toEqual([2, 4, 6]);
});

test('503 for those whose statement has not begun in time, and the others go on', async () => {
  const { batches, execute, release } = controlled();
  const line = new Batches(execute, { ...LIMITS, waitMs: 50 });
  const begun = line.run(1);
  await settled();
  const waiting = line.run(2);
  await expect(waiting).rejects.toMatchObject({ definition: UNAVAILABLE, headers: { 'Retry-After': '1' } });
  const later = line.run(3);
  release();
  expect(await begun).toBe(2);
  await settled();
  release();
  expect(await later).toBe(6);
  expect(batches).toEqual([[1], [3]]);
});

test('503 for those that cannot be run alone in time, after what they shared was refused', async () => {
  const executed: number[][] = [];
  const line = new Batches(
    async (inputs: readonly number[]) => {
      executed.push([...inputs]);
      if (inputs.length > 1) throw new pg.DatabaseError('one of them is bad', 0, 'error');
      await new Promise((over) => setTimeout(over, 100));
      return inputs;
    },
    { ...LIMITS, waitMs: 50 },
  );
  const outcomes = await Promise.allSettled([1, 2, 3].map((input) => line.run(input)));
  expect(outcomes).toMatchObject([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: { definition: UNAVAILABLE } },
    { status: 'rejected', reason: { definition: UNAVAILABLE } },
  ]);
  expect(executed).toEqual([[1, 2, 3], [1]]);
});
