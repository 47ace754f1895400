import { fingerprintOf } from './fingerprint.js';

const fingerprint = (input: object, operation = 'POST /v1/orders'): string =>
  fingerprintOf(operation, input).toString('hex');

class NewOrder {
  name: string;
  colour = 'brown';
  sizes = [{ width: 1n }];
  note?: string = undefined;
}
const order = (members: object): NewOrder => Object.assign(new NewOrder(), members);

test('a fingerprint does not depend on the order of members, at any depth', () => {
  const one = { name: 'Rex', categoryId: 7n, tags: [{ a: 1, b: 2 }] };
  const other = { tags: [{ b: 2, a: 1 }], categoryId: 7n, name: 'Rex' };
  expect(fingerprint(one)).toBe(fingerprint(other));
  expect(fingerprint({ toJSON: 1, a: 2 })).toBe(fingerprint({ a: 2, toJSON: 1 }));
  const pairs: [string, number][] = [
    ['a', 1],
    ['b', 2],
  ];
  expect(fingerprint({ tags: new Map(pairs) })).toBe(fingerprint({ tags: new Map(pairs.reverse()) }));
});

test('a fingerprint is the same for an undefined and for a missing member', () => {
  expect(fingerprint({ name: 'Rex', note: undefined })).toBe(fingerprint({ name: 'Rex' }));
});

test.each([
  ['the last digit of an int64', { id: 9223372036854775807n }, { id: 9223372036854775806n }],
  ['a digit beyond 2^53', { id: 9007199254740993n }, { id: 9007199254740992n }],
  ['type, number or text', { id: 7n }, { id: '7' }],
  ['the order of an array', { tags: [1, 2] }, { tags: [2, 1] }],
  ['the exponent of a number', { size: 1e100 }, { size: 1e200 }],
  ['a number beyond a double, or null', { size: Infinity }, { size: null }],
  ['the sign of a number beyond a double', { size: Infinity }, { size: -Infinity }],
  ['the normalisation of a text', { name: '\u00e9' }, { name: 'e\u0301' }],
  ['the position where one text ends and the next begins', { a: 'xy', b: 'z' }, { a: 'x', b: 'yz' }],
  ['null in place of a missing member', { name: null }, {}],
  ['a member of a Map', { tags: new Map([['a', 1]]) }, { tags: new Map([['a', 2]]) }],
  ['an item of a Set', { tags: new Set([1]) }, { tags: new Set([2]) }],
  ['a millisecond of a time', { at: new Date(0) }, { at: new Date(1) }],
])('fingerprints differ by %s', (_, one, other) => {
  expect(fingerprint(one)).not.toBe(fingerprint(other));
});

test('fingerprints of different operations differ', () => {
  expect(fingerprint({ name: 'Rex' })).not.toBe(fingerprint({ name: 'Rex' }, 'POST /v1/visits'));
});

test('a fingerprint ignores members with the default of their class, at any depth, and no others', () => {
  const before = fingerprint({ name: 'Rex' });
  expect(fingerprint(order({ name: 'Rex' }))).toBe(before);
  expect(fingerprint(order({ name: 'Rex', colour: 'brown', sizes: [{ width: 1n }] }))).toBe(before);
  expect(fingerprint({ id: 7n, body: order({ name: 'Rex' }) })).toBe(fingerprint({ id: 7n, body: { name: 'Rex' } }));
  for (const other of [{ colour: 'black' }, { sizes: [] }, { sizes: [{ width: 2n }] }, { note: 'brown' }]) {
    expect(fingerprint(order({ name: 'Rex', ...other }))).not.toBe(before);
  }
});
