import fc from 'fast-check';
import { compareInt64Texts, INT64_MAX, INT64_MIN, int64Of, isInt64, parseInt64, toInt64 } from './int64.js';

const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX });

test('isInt64 accepts exactly the bigints of signed 64-bit integers', () => {
  fc.assert(fc.property(fc.bigInt(), (value) => isInt64(value) === (BigInt.asIntN(64, value) === value)));
  expect([INT64_MIN, INT64_MAX].every(isInt64)).toBe(true);
  expect([INT64_MIN - 1n, INT64_MAX + 1n, 0, '0'].filter(isInt64)).toEqual([]);
});

test('parseInt64 accepts exactly the canonical texts of int64 values', () => {
  fc.assert(fc.property(int64, (value) => parseInt64(String(value)) === value));
  const nearly = fc.string({ unit: fc.constantFrom(...'-+0123456789.e_ n'), maxLength: 24 });
  const isExact = (text: string): boolean => parseInt64(text) === (isCanonical(text) ? BigInt(text) : undefined);
  fc.assert(fc.property(nearly, isExact), { numRuns: 2000 });
});

test('int64Of is exact for the text of every int64, of any length', () => {
  const near = fc.oneof(int64, fc.bigInt(-(10n ** 17n), 10n ** 17n), fc.bigInt(-1_100n, 1_100n));
  fc.assert(fc.property(near, (value) => int64Of(String(value)) === value));
  const texts = ['0', '-1', '999999999999999', '9007199254740993', '-9007199254740993', String(INT64_MIN)];
  expect(texts.map(int64Of)).toEqual(texts.map(BigInt));
  expect([42n, 42].map((value) => int64Of(value as never))).toEqual([42n, 42n]);
  expect(() => int64Of('one')).toThrow();
});

describe('toInt64', () => {
  test('accepts safe integers, and bigints in the range', () => {
    fc.assert(fc.property(fc.maxSafeInteger(), (value) => toInt64(value) === BigInt(value)));
    fc.assert(fc.property(int64, (value) => toInt64(value) === value));
    expect(toInt64(-0)).toBe(0n);
    expect(toInt64(Number.MAX_SAFE_INTEGER)).toBe(9007199254740991n);
  });

  test.each([1.5, NaN, Infinity, 2 ** 53, -(2 ** 53), INT64_MAX + 1n, INT64_MIN - 1n, '1', true, null, {}])(
    'refuses %p',
    (value) => {
      expect(toInt64(value)).toBeUndefined();
    },
  );
});

test('compareInt64Texts orders numerals by their values, of any sign and length', () => {
  const near = fc.oneof(int64, fc.bigInt(-1_100n, 1_100n));
  const order = (one: bigint, other: bigint): number => (one < other ? -1 : one > other ? 1 : 0);
  fc.assert(fc.property(near, near, (one, other) => compareInt64Texts(`${one}`, `${other}`) === order(one, other)));
});

/** The grammar and the range a second time, without a regular expression. */
function isCanonical(text: string): boolean {
  const digits = text.startsWith('-') ? text.slice(1) : text;
  if (digits === '' || [...digits].some((digit) => !'0123456789'.includes(digit))) return false;
  return String(BigInt(text)) === text && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}
