import { createHash } from 'node:crypto';
import { Fingerprint } from './fingerprint.js';

const fingerprint = (input: object, operation = 'POST /v1/orders', handler = 'createOrder'): string =>
  new Fingerprint({ operation, handler }, input).current.toString('hex');

class NewOrder {
  name: string;
  colour = 'brown';
  sizes = [{ width: 1n }];
  note?: string = undefined;
}
const order = (members: object): NewOrder => Object.assign(new NewOrder(), members);

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
  expect(fingerprint({ name: 'Rex' })).not.toBe(fingerprint({ name: 'Rex' }, 'POST /v1/visits'));
});

test('is the same after a handler was renamed', () => {
  expect(fingerprint({ name: 'Rex' }, 'POST /v1/orders', 'addOrder')).toBe(fingerprint({ name: 'Rex' }));
});

test('leaves out what is the default of the class, at every depth, and nothing else', () => {
  const before = fingerprint({ name: 'Rex' });
  expect(fingerprint(order({ name: 'Rex' }))).toBe(before);
  expect(fingerprint(order({ name: 'Rex', colour: 'brown', sizes: [{ width: 1n }] }))).toBe(before);
  expect(fingerprint({ id: 7n, body: order({ name: 'Rex' }) })).toBe(fingerprint({ id: 7n, body: { name: 'Rex' } }));
  for (const other of [{ colour: 'black' }, { sizes: [] }, { sizes: [{ width: 2n }] }, { note: 'brown' }]) {
    expect(fingerprint(order({ name: 'Rex', ...other }))).not.toBe(before);
  }
});

test('matches what is stored of the same request, also by version 1, which had the handler and all members', () => {
  const key = { operation: 'POST /v1/orders', handler: 'createOrder' };
  const version1 = createHash('sha256')
    .update('createOrder\n{"colour":"brown","name":"Rex","sizes":[{"width":1}]}')
    .digest();
  const same = new Fingerprint(key, order({ name: 'Rex' }));
  expect(same.matches(same.current)).toBe(true);
  expect(same.matches(version1)).toBe(true);
  const other = new Fingerprint(key, order({ name: 'Rex', colour: 'black' }));
  expect([other.matches(same.current), other.matches(version1)]).toEqual([false, false]);
});
