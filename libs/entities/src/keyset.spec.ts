import fc from 'fast-check';
import { INT64_MAX, INT64_MIN } from '#json';
import { CURSOR_PATTERN, type Filters, Keyset, MAX_CURSOR_LENGTH } from './keyset.js';

const int64 = fc.bigInt({ min: INT64_MIN, max: INT64_MAX });
const value = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.bigInt(),
  fc.boolean(),
  fc.array(fc.string()),
  fc.constant(undefined),
);
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

test('the cursors of the last release are accepted', () => {
  const cursor = 'Arg30Q4AIAAAAAAAAdwwtKM';
  expect(order.decode(cursor, { status: 'sold', from: 2n })).toBe(9007199254740993n);
});

test('a cursor with one added, missing or changed character is refused', () => {
  const cursor = order.encode({ id: 7n }, { status: 'sold' });
  for (let index = 0; index < cursor.length; index++) {
    const [before, after] = [cursor.slice(0, index), cursor.slice(index + 1)];
    for (const changed of [
      `${before}${after}`,
      `${before}${cursor[index] === 'A' ? 'B' : 'A'}${after}`,
      `${before}-${after}x`,
    ]) {
      expect([changed, refusal(changed, { status: 'sold' })]).toEqual([changed, UNKNOWN]);
    }
  }
  for (const other of ['', 'A', '%%%', '🐕']) {
    expect(refusal(other, { status: 'sold' })).toBe(UNKNOWN);
  }
});

test('a cursor is refused with other filters than its own', () => {
  const cursor = order.encode({ id: 7n }, { status: '1', from: undefined });
  expect(order.decode(cursor, { status: '1' })).toBe(7n);
  expect(refusal(cursor, { status: 1 })).toBe(
    'cursor was made with other filters; send the same status as on the first page',
  );
  expect(refusal(cursor, { status: undefined, from: '1' })).toBe(
    'cursor was made with other filters; send the same status, from as on the first page',
  );
});

describe('an order by several columns', () => {
  const byName = new Keyset({ name: 'ASC', id: 'ASC' });

  test('a cursor gives the exact values of the last row', () => {
    const name = fc.option(fc.string({ unit: 'grapheme', maxLength: 100 }).filter((text) => !text.includes('\0')));
    fc.assert(
      fc.property(name, int64, filters, (text, id, given) => {
        const cursor = byName.encode({ name: text, id }, given);
        expect(byName.decode(cursor, given)).toEqual({ name: text, id: String(id) });
        expect(cursor).toMatch(new RegExp(CURSOR_PATTERN));
      }),
    );
    expect(byName.decode(undefined, {})).toBeUndefined();
  });

  test('the cursors of the last release are accepted', () => {
    expect(byName.decode('AwAAAADSiX-MAAVCw6RyLgABNwyckOs', {})).toEqual({ name: 'Bär.', id: '7' });
  });

  test('a cursor is as long as its values, and no longer than a URL may be', () => {
    const longest = byName.encode({ name: '語'.repeat(682), id: 1 }, {});
    expect(longest.length).toBeLessThan(MAX_CURSOR_LENGTH);
    expect(() => byName.encode({ name: '語'.repeat(683), id: 1 }, {})).toThrow(
      new TypeError('A cursor holds 2048 bytes, but name, id of a row have 2050.'),
    );
  });

  test('a value that is no exact text is refused', () => {
    const refused = /^A cursor needs name as its exact text: select a time as created_at::text\.$/;
    for (const name of [new Date(), undefined]) {
      expect(() => byName.encode({ name: name as unknown as string, id: 1 }, {})).toThrow(refused);
    }
  });

  test('a cursor of another order, another list or other columns is refused', () => {
    const last = { name: 'Ann', id: '7' };
    const others = [
      new Keyset({ name: 'DESC', id: 'ASC' }).encode(last, {}),
      new Keyset({ name: { direction: 'ASC', nulls: 'FIRST' }, id: 'ASC' }).encode(last, {}),
      new Keyset({ id: 'ASC', name: 'ASC' }).encode(last, {}),
      new Keyset({ name: 'ASC', id: 'ASC' }, 'another').encode(last, {}),
      order.encode(last, {}),
      byName.encode({ ...last, name: 'A\0' }, {}),
    ];
    for (const other of others) expect(() => byName.decode(other, {})).toThrow(UNKNOWN);
    expect(() => order.decode(byName.encode(last, {}), {})).toThrow(UNKNOWN);
    // Those of PostgreSQL's own default are the same order.
    const explicit = new Keyset({ name: { direction: 'ASC', nulls: 'LAST' }, id: { direction: 'ASC' } });
    expect(byName.decode(explicit.encode(last, {}), {})).toEqual(last);
  });
});
