import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, toInt64 } from './int64.js';
import { jsonTextOf, shared, writeJson } from './json-writer.js';
import { readOwnJson } from './json-reader.js';

const edges = [0n, 1n, 2n ** 53n, 2n ** 63n].flatMap((edge) => [edge - 1n, edge, edge + 1n, -edge]);
const int64 = fc.oneof(
  fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
  fc.constantFrom(...edges.filter((edge) => edge >= INT64_MIN && edge <= INT64_MAX)),
);

describe('writeJson', () => {
  test('writes a bigint of any size with all its digits', () => {
    fc.assert(fc.property(fc.bigInt(), (value) => writeJson({ value }) === `{"value":${value}}`));
  });

  test('writes what readOwnJson reads back, over the whole range of int64', () => {
    const things = fc.array(fc.record({ id: int64, name: fc.string({ unit: 'binary' }), gone: fc.constant(null) }));
    fc.assert(
      fc.property(things, (list) => {
        const read = readOwnJson(writeJson(list)) as { id: number | bigint }[];
        expect(read.map((thing) => ({ ...thing, id: toInt64(thing.id) }))).toEqual(list);
      }),
    );
  });

  test('writes everything else as JSON.stringify does', () => {
    const text = fc.string({
      unit: fc.oneof(fc.string({ unit: 'binary', minLength: 1 }), fc.constantFrom('\ud83d', '\udc15')),
    });
    const anything = fc.anything({
      values: [fc.boolean(), fc.integer(), fc.double(), text, fc.constantFrom(null, undefined, Symbol())],
      key: text,
      withDate: true,
      withMap: true,
      withSet: true,
      withNullPrototype: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    fc.assert(
      fc.property(anything, (value) => {
        expect(attempt(() => writeJson(value))).toBe(attempt(() => JSON.stringify(value)) ?? 'TypeError');
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ['toJSON, with the name of its member', { a: recording(), b: [recording(), recording()] }],
    ['toJSON at the top', recording()],
    ['toJSON that gives an object with toJSON', { toJSON: () => ({ toJSON: () => 1 }) }],
    ['toJSON that gives nothing', { a: { toJSON: () => undefined }, b: [{ toJSON: () => undefined }] }],
    ['toJSON that is no function', { toJSON: 1 }],
    ['an invalid date', [new Date(NaN), new Date(0)]],
    ['functions and symbols', { a: () => 1, b: Symbol('b'), c: [() => 1, Symbol('c'), undefined], [Symbol('d')]: 1 }],
    ['numbers without a JSON form', [NaN, Infinity, -Infinity, -0, 1e21, 5e-324]],
    ['an instance', Object.create({ inherited: 1 }, { own: { value: 1, enumerable: true }, hidden: { value: 2 } })],
    ['characters that need an escape', '"\\/\b\f\n\r\t\0\u001f\u007f\u2028\ud83d🐕'],
    ['__proto__ as a member', JSON.parse('{"__proto__":1}')],
    ['constructor as a member', [{ constructor: 1 }, Object.create({ constructor: 'a' }), Object.create(null)]],
  ])('writes %s as JSON.stringify does', (_, value) => {
    expect(writeJson(value)).toBe(JSON.stringify(value));
  });

  test('shared arrays keep their text, and may be shared or frozen before', () => {
    const items = shared(shared([{ id: 1n }]));
    expect(jsonTextOf(items, true)).toBe(jsonTextOf(items, true));
    expect(jsonTextOf(shared(Object.freeze([{ id: 2n }])), false).text).toBe('[{"id":2}]');
    expect(items).toEqual([{ id: 1n }]);
  });

  test('refuses a cycle', () => {
    const cycle: unknown[] = [];
    cycle.push({ cycle });
    expect(() => writeJson(cycle)).toThrow(RangeError);
  });

  test.each([undefined, () => 1, Symbol('s'), { toJSON: () => undefined }])(
    'refuses %p, which has no JSON text',
    (value) => {
      expect(() => writeJson(value)).toThrow(TypeError);
    },
  );
});

/** A value whose JSON text has the argument of its `toJSON`. */
function recording(): object {
  return { toJSON: (key: unknown) => `key ${String(key)} (${typeof key})` };
}

function attempt(action: () => string | undefined): string | undefined {
  try {
    return action();
  } catch (error) {
    return (error as Error).name;
  }
}
