import { fingerprintOf } from './fingerprint.js';

const fingerprint = (input: unknown, operation = 'createOrder'): string =>
  fingerprintOf(operation, input).toString('hex');

test('is the same whatever the order of members, at every depth', () => {
  const one = { name: 'Rex', categoryId: 7n, tags: [{ a: 1, b: 2 }] };
  const other = { tags: [{ b: 2, a: 1 }], categoryId: 7n, name: 'Rex' };
  expect(fingerprint(one)).toBe(fingerprint(other));
});

test('is the same for a member that is undefined and one that is missing', () => {
  expect(fingerprint({ name: 'Rex', note: undefined })).toBe(fingerprint({ name: 'Rex' }));
});

test.each([
  ['the last digit of an int64', { id: 9223372036854775807n }, { id: 9223372036854775806n }],
  ['a digit beyond 2^53', { id: 9007199254740993n }, { id: 9007199254740992n }],
  ['a number and a text', { id: 7n }, { id: '7' }],
  ['the order of an array', { tags: [1, 2] }, { tags: [2, 1] }],
  ['the normalisation of a text', { name: '\u00e9' }, { name: 'e\u0301' }],
  ['where one text ends and the next begins', { a: 'xy', b: 'z' }, { a: 'x', b: 'yz' }],
  ['null and nothing', { name: null }, {}],
  ['two times', { at: new Date(0) }, { at: new Date(1) }],
])('tells %s', (_, one, other) => {
  expect(fingerprint(one)).not.toBe(fingerprint(other));
});

test('tells one operation from another', () => {
  expect(fingerprint({ name: 'Rex' })).not.toBe(fingerprint({ name: 'Rex' }, 'createVisit'));
});
