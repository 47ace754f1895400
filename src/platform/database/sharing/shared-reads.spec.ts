import { UNAVAILABLE } from '../../errors/error-catalogue.js';
import { SharedReads } from './shared-reads.js';

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

/** A `load` whose n-th read answers n. Each call of `release` answers the oldest read. */
function controlled() {
  const releases: ((error?: Error) => void)[] = [];
  let begun = 0;
  const load = (): Promise<number> => {
    const reading = ++begun;
    return new Promise((resolve, reject) => {
      releases.push((error) => (error ? reject(error) : resolve(reading)));
    });
  };
  return { load, begun: () => begun, release: (error?: Error) => releases.shift()?.(error) };
}

test('callers during a read share the next read, never the running one', async () => {
  const { load, begun, release } = controlled();
  const reads = new SharedReads<number>(10, 10_000);
  const first = reads.read('page', load);
  await settled();
  const joined = [reads.read('page', load), reads.read('page', load)];
  await settled();
  expect(begun()).toBe(1);
  release();
  expect(await first).toBe(1);
  await settled();
  expect(begun()).toBe(2);
  const late = reads.read('page', load);
  release();
  expect(await Promise.all(joined)).toEqual([2, 2]);
  await settled();
  release();
  expect(await late).toBe(3);
});

test('reads with different keys run at the same time', async () => {
  const { load, begun, release } = controlled();
  const reads = new SharedReads<number>(10, 10_000);
  const answers = [reads.read('one', load), reads.read('other', load)];
  await settled();
  expect(begun()).toBe(2);
  release();
  release();
  expect((await Promise.all(answers)).sort()).toEqual([1, 2]);
});

test('a failed read rejects the callers that share it, and the next read succeeds', async () => {
  const { load, release } = controlled();
  const reads = new SharedReads<number>(10, 10_000);
  const failing = reads.read('page', load);
  await settled();
  const next = reads.read('page', load);
  release(new Error('broken'));
  await expect(failing).rejects.toThrow('broken');
  await settled();
  release();
  expect(await next).toBe(2);
});

test('no answer is cached', async () => {
  const reads = new SharedReads<number>(1, 10_000);
  for (let index = 0; index < 100; index++) {
    expect(await reads.read(`page ${index}`, () => Promise.resolve(index))).toBe(index);
  }
});

test('503 at once when too many different keys are read', async () => {
  const { load, release } = controlled();
  const reads = new SharedReads<number>(1, 10_000);
  const one = reads.read('one', load);
  expect(() => reads.read('other', load)).toThrow(expect.objectContaining({ definition: UNAVAILABLE }) as Error);
  await settled();
  release();
  expect(await one).toBe(1);
});

test('503 for callers that wait too long for the previous read, and later reads succeed', async () => {
  const { load, begun, release } = controlled();
  const reads = new SharedReads<number>(1, 50);
  const hanging = reads.read('page', load);
  await settled();
  await expect(reads.read('page', load)).rejects.toMatchObject({ definition: UNAVAILABLE });
  expect(begun()).toBe(1);
  const next = reads.read('page', load);
  release();
  expect(await hanging).toBe(1);
  await settled();
  release();
  expect(await next).toBe(2);
});
