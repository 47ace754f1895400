import { retryDelay } from '../src/retries.js';

test.each([
  [1, 250],
  [2, 500],
  [3, 1_000],
  [6, 8_000],
  [7, 8_000],
  [2_000, 8_000],
])('after attempt %i the wait is random, up to %i ms', (attempt, longest) => {
  expect([0, 0.5, 1].map((random) => retryDelay(attempt, undefined, random))).toEqual([0, longest / 2, longest]);
});

test('the wait is the whole Retry-After and a random part', () => {
  expect(retryDelay(1, 1_000, 0)).toBe(1_000);
  expect(retryDelay(1, 1_000, 1)).toBe(1_250);
});

test('waits after the same attempt differ', () => {
  expect(new Set(Array.from({ length: 20 }, () => retryDelay(3))).size).toBeGreaterThan(10);
});
