import { judge, type Verdict } from './flatness.js';

/** The verdict on 40 samples of an imaginary run, with 5 % or 4 allowed. */
function judged(value: (index: number) => number): Verdict {
  const samples = Array.from({ length: 40 }, (_, index) => value(index));
  return judge(samples, 0.05, 4);
}

/** Repeatable noise between -1 and 1. */
const noise = (index: number): number => Math.sin(index * 12.9898) * Math.cos(index * 78.233);

test.each([
  ['noise', (index: number) => 50 + 3 * noise(index)],
  ['a cache that fills in the warm-up', (index: number) => 40 + Math.min(index, 13)],
  ['single outliers, also as the last sample', (index: number) => (index === 20 || index === 39 ? 500 : 50)],
  ['a fall', (index: number) => 90 - index],
  ['growth up to the share', (index: number) => (index < 30 ? 100 : 105)],
  ['growth up to the allowance', (index: number) => (index < 30 ? 10 : 14)],
])('flat: %s', (_, value) => {
  expect(judged(value).isFlat).toBe(true);
});

test.each([
  ['a leak below noise', (index: number) => 50 + 0.4 * index + 3 * noise(index)],
  ['a leak below the saw-tooth of garbage collection', (index: number) => 50 + 0.4 * index + (index % 5)],
  ['a step that stays', (index: number) => (index < 25 ? 50 : 60)],
  ['growth beyond share and allowance', (index: number) => (index < 30 ? 100 : 105.001)],
  ['a figure that is missing', () => NaN],
])('not flat: %s', (_, value) => {
  expect(judged(value).isFlat).toBe(false);
});

test('too few samples are refused', () => {
  expect(() => judge([1, 1, 1, 1, 1, 1, 1, 1], 0.05, 4)).toThrow('at least 9 samples, and there are 8');
});
