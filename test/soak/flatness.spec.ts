import { judge, median } from './flatness.js';

const TOLERANCE = { share: 0.05, allowance: 4 };

/** Samples of an imaginary run. */
function series(length: number, value: (index: number) => number): number[] {
  return Array.from({ length }, (_, index) => value(index));
}

/** Repeatable noise between -1 and 1. */
const noise = (index: number): number => Math.sin(index * 12.9898) * Math.cos(index * 78.233);

describe('judge', () => {
  test.each([
    ['a constant', () => 50],
    ['noise', (index: number) => 50 + 3 * noise(index)],
    ['a warm-up that ends', (index: number) => 50 - 30 * Math.exp(-index / 4)],
    ['a saw-tooth', (index: number) => 50 + (index % 5)],
    ['a cache that fills in the warm-up', (index: number) => 40 + Math.min(index, 13)],
    ['single outliers, also as the last sample', (index: number) => (index === 20 || index === 39 ? 500 : 50)],
    ['a fall', (index: number) => 90 - index],
  ])('flat: %s', (_, value) => {
    expect(judge(series(40, value), TOLERANCE).isFlat).toBe(true);
  });

  test.each([
    ['a steady leak', (index: number) => 50 + 0.4 * index],
    ['a steady leak below noise', (index: number) => 50 + 0.4 * index + 3 * noise(index)],
    ['a leak below the saw-tooth of garbage collection', (index: number) => 50 + 0.4 * index + (index % 5)],
    ['an accelerating leak', (index: number) => 50 + 0.01 * index ** 2],
    ['a step that stays', (index: number) => (index < 25 ? 50 : 60)],
    ['one handle a sample', (index: number) => 30 + index],
  ])('not flat: %s', (_, value) => {
    expect(judge(series(40, value), TOLERANCE).isFlat).toBe(false);
  });

  test('allows growth up to the larger of share and allowance, and none beyond', () => {
    const step = (to: number): number[] => series(30, (index) => (index < 20 ? 100 : to));
    expect(judge(step(105), { share: 0.05, allowance: 4 })).toEqual({
      first: 100,
      last: 105,
      growth: 5,
      allowed: 5,
      isFlat: true,
    });
    expect(judge(step(105.001), { share: 0.05, allowance: 4 }).isFlat).toBe(false);
    expect(judge(step(108), { share: 0.05, allowance: 8 }).isFlat).toBe(true);
    expect(judge(step(108.001), { share: 0.05, allowance: 8 }).isFlat).toBe(false);
  });

  test('refuses fewer than 9 samples, and a sample that is not a finite number', () => {
    expect(() =>
      judge(
        series(8, () => 1),
        TOLERANCE,
      ),
    ).toThrow('at least 9 samples, and there are 8');
    expect(() => judge([...series(9, () => 1), NaN], TOLERANCE)).toThrow('finite number');
  });
});

test('the median is the middle value, or the mean of the two middle values', () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([7])]).toEqual([2, 2.5, 7]);
});
