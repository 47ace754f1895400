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
