import { TokenBuckets } from './token-buckets.js';

test('a clock that is set back neither adds nor removes tokens', () => {
  const buckets = new TokenBuckets();
  buckets.take(1n, 60, 100_000);
  expect(buckets.take(1n, 60, 0)).toBe(58);
  expect(buckets.take(1n, 60, 1_000)).toBe(58);
});

test('beyond 10,000 clients only the least recent caller gets a new, full bucket', () => {
  const buckets = new TokenBuckets();
  for (let client = 0n; client < 10_000n; client++) buckets.take(client, 2, 0);
  expect(buckets.take(0n, 2, 1)).toBeCloseTo(0);
  buckets.take(10_000n, 2, 1);
  expect(buckets.take(0n, 2, 1)).toBeCloseTo(-1);
  expect(buckets.take(1n, 2, 1)).toBe(1);
});
