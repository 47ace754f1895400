import fc from 'fast-check';
import { INT64_MAX, INT64_MIN } from '#json';
import { StartupError } from '#runtime';
import { CURSOR_PATTERN, type Filters, Keyset, MAX_CURSOR_LENGTH, type OrderBy } from './cursors.js';

const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX });
const text = fc.string();
const value = fc.oneof(text, fc.integer(), fc.bigInt(), fc.boolean(), fc.array(text), fc.constant(undefined));
const filters: fc.Arbitrary<Filters> = fc.dictionary(fc.constantFrom('status', 'from', 'to', 'tag'), value);
const order = new Keyset('id');

/** The message of the ApiError for a refused cursor. */
function refusal(cursor: string, given: Filters): string {
  try {
    order.decode(cursor, given);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('The cursor is accepted.');
}

const UNKNOWN = 'cursor must be taken unchanged from the Link of a page of this list';
const OTHER_FILTERS = 'cursor was made with other filters; send the same ones as on the first page';

test('a cursor gives the exact id of the last row, in any order of its filters', () => {
  fc.assert(
    fc.property(int64, filters, (id, given) => {
      const cursor = order.encode({ id: String(id) }, given);
      const reversed = Object.fromEntries(Object.entries(given).reverse());
      expect(order.decode(cursor, reversed)).toBe(id);
      expect(cursor).toMatch(new RegExp(CURSOR_PATTERN));
      expect(cursor.length).toBeLessThanOrEqual(MAX_CURSOR_LENGTH / 2);
    }),
  );
});

const RELEASED: [
  order: string | OrderBy,
  list: string,
  last: Record<string, string>,
  filters: Filters,
  cursor: string,
][] = [
  ['id', '', { id: '9007199254740993' }, {}, 'AgAAAAAAIAAAAAAAAdeS-sM'],
  ['id', 'test_toy', { id: '-9223372036854775808' }, { status: 'sold' }, 'AuvWNSGAAAAAAAAAAPmuLJE'],
  [
    'key',
    '',
    { key: '7' },
    { at: new Date('2026-02-28T08:30:00Z'), from: 2n, tag: ['a', 'b'], is: true, size: 7 },
    'AlNd8W8AAAAAAAAAB3XX12c',
  ],
  [{ id: 'DESC' }, 'test_toy', { id: '9007199254740993' }, {}, 'AwAAAABdntXzABA5MDA3MTk5MjU0NzQwOTkznhCNGQ'],
  [{ id: 'ASC' }, '', { id: '9007199254740993' }, {}, 'AwAAAAB8IYS3ABA5MDA3MTk5MjU0NzQwOTkztxSPHA'],
  [
    { name: 'ASC', id: 'ASC' },
    '',
    { name: 'Bär "it\'s" \\', id: '9007199254740993' },
    { mood: 'calm' },
    'A248vefSiX-MAA1Cw6RyICJpdCdzIiBcABA5MDA3MTk5MjU0NzQwOTkzya5KZw',
  ],
  [
    { name: 'DESC', id: 'DESC' },
    'shop.toy',
    { name: '', id: '9007199254740993' },
    {},
    'AwAAAACOBxYlAAAAEDkwMDcxOTkyNTQ3NDA5OTPuWLJD',
  ],
  [
    { madeAt: 'DESC', id: 'DESC' },
    'test_toy',
    { madeAt: '1795860000.000001', id: '9007199254740993' },
    { status: 'sold' },
    'A-vWNSFso7UaABExNzk1ODYwMDAwLjAwMDAwMQAQOTAwNzE5OTI1NDc0MDk5MyWy9bw',
  ],
  [
    { madeAt: 'ASC', id: 'ASC' },
    'test_toy',
    { madeAt: '-62167219200.25', id: '1' },
    {},
    'AwAAAAAaJfIaAA8tNjIxNjcyMTkyMDAuMjUAATHbwjEk',
  ],
  [
    { isNew: 'DESC', mood: 'DESC', size: 'DESC', price: 'DESC', code: 'DESC', id: 'DESC' },
    'test_toy',
    {
      isNew: 'true',
      mood: 'sly',
      size: '2',
      price: '12345678901234567890.0123456789',
      code: 'e369853d-f766-fa44-e1ed-0ff613f563bd',
      id: '7',
    },
    {},
    'AwAAAABxhKHxAAR0cnVlAANzbHkAATIAHzEyMzQ1Njc4OTAxMjM0NTY3ODkwLjAxMjM0NTY3ODkAJGUzNjk4NTNkLWY3NjYtZmE0NC1lMWVkLTBmZjYxM2Y1NjNiZAABN5fGi0o',
  ],
  [
    { isNew: 'ASC', size: 'ASC', id: 'ASC' },
    '',
    { isNew: 'false', size: '2', id: '7' },
    {},
    'AwAAAADy02b-AAVmYWxzZQABMgABN31_ztg',
  ],
];

test.each(RELEASED)(
  'the cursors of the last release stay: %j of the list "%s" after %j',
  (of, list, last, given, cursor) => {
    const keyset = new Keyset<string | OrderBy>(of, list);
    const start = keyset.decode(cursor, given);
    expect(typeof of === 'string' ? { [of]: String(start as bigint) } : start).toEqual(last);
    expect(keyset.encode(last as Record<string, string> & string, given)).toBe(cursor);
  },
);

test('a cursor with one added, missing or changed character is refused', () => {
  const cursor = order.encode({ id: 7n }, { status: 'sold' });
  for (let index = 0; index < cursor.length; index++) {
    const [before, after] = [cursor.slice(0, index), cursor.slice(index + 1)];
    for (const piece of ['', cursor[index] === 'A' ? 'B' : 'A', `${cursor[index]}x`]) {
      const changed = `${before}${piece}${after}`;
      expect([changed, refusal(changed, { status: 'sold' })]).toEqual([changed, UNKNOWN]);
    }
  }
  for (const other of ['', 'A', '%%%', '🐕']) expect(refusal(other, { status: 'sold' })).toBe(UNKNOWN);
});

test('a cursor is refused with other filters than its own', () => {
  const cursor = order.encode({ id: 7n }, { status: '1', from: undefined });
  expect(order.decode(cursor, { status: '1' })).toBe(7n);
  for (const other of [{ status: 1 }, { status: undefined, from: '1' }])
    expect(refusal(cursor, other)).toBe(OTHER_FILTERS);
});

describe('an order by several columns', () => {
  const byName = new Keyset({ name: 'ASC', id: 'ASC' });

  test('a cursor gives the exact values of the last row', () => {
    const name = fc.string({ unit: 'grapheme', maxLength: 100 }).filter((text) => !text.includes('\0'));
    fc.assert(
      fc.property(name, int64, filters, (text, id, given) => {
        const cursor = byName.encode({ name: text, id }, given);
        expect(byName.decode(cursor, given)).toEqual({ name: text, id: String(id) });
        expect(cursor).toMatch(new RegExp(CURSOR_PATTERN));
      }),
    );
    expect(byName.decode(undefined, {})).toBeUndefined();
  });

  test('numbers and booleans are texts', () => {
    const last = new Keyset({ isNew: 'ASC', id: 'ASC' }).encode({ isNew: false, id: 7 }, {});
    expect(new Keyset({ isNew: 'ASC', id: 'ASC' }).decode(last, {})).toEqual({ isNew: 'false', id: '7' });
  });

  test('a cursor is as long as its values, and no longer than a URL may be', () => {
    const longest = byName.encode({ name: '語'.repeat(682), id: 1 }, {});
    expect(longest.length).toBeLessThan(MAX_CURSOR_LENGTH);
    expect(() => byName.encode({ name: '語'.repeat(683), id: 1 }, {})).toThrow(
      new TypeError('A cursor holds 2048 bytes, but name, id of a row have 2050.'),
    );
  });

  test('a value that is no exact text is refused', () => {
    const refused =
      /^A cursor needs name as its exact text: select a time as created_at::text, and coalesce\(name, …\)/;
    for (const name of [new Date(), undefined, null]) {
      expect(() => byName.encode({ name: name as unknown as string, id: 1 }, {})).toThrow(refused);
    }
    // @ts-expect-error -- the check of types fails if this compiles
    expect(() => byName.encode({ name: null, id: 1 }, {})).toThrow(refused);
    // Of { name: null, id: 7 }, made when a Keyset took nulls.
    expect(() => byName.decode('AwAAAADSiX-M__8AATcdyooA', {})).toThrow(UNKNOWN);
  });

  test.each<OrderBy>([
    { name: 'ASC', id: 'DESC' },
    { name: { direction: 'ASC', nulls: 'FIRST' } as unknown as 'ASC' },
    { name: 'up' as 'ASC' },
    {},
  ])('the directions %j are refused when it is made', (mixed) => {
    expect(() => new Keyset(mixed)).toThrow(StartupError);
    expect(() => new Keyset(mixed)).toThrow(`which ${JSON.stringify(mixed)} has not`);
  });

  // `platform/sorted-lists` has cursors of other orders, lists and columns.
  test('a cursor of the same columns in another order is refused, and one of several columns where there is one', () => {
    const last = { name: 'Ann', id: '7' };
    const other = new Keyset({ id: 'ASC', name: 'ASC' }).encode(last, {});
    expect(() => byName.decode(other, {})).toThrow(UNKNOWN);
    expect(() => order.decode(byName.encode(last, {}), {})).toThrow(UNKNOWN);
  });
});
