import { int64MembersOf } from '../scripts/int64-members.js';

const INT64 = { type: 'integer', format: 'int64' };
const documentOf = (properties: object): object => ({ components: { schemas: { Thing: { properties } } } });

test('members that are int64 or arrays of int64 are found at every depth', () => {
  const deep = { type: 'array', items: { properties: { petId: INT64 } } };
  const members = { id: INT64, petIds: { type: 'array', items: INT64 }, deep, name: { type: 'string' } };
  expect(int64MembersOf(documentOf(members))).toEqual(['id', 'petId', 'petIds']);
});

test('parameters may be arrays of int64, because they are not sent as JSON', () => {
  const parameters = [{ name: 'id', in: 'query', schema: { type: 'array', items: INT64 } }];
  expect(int64MembersOf({ paths: { '/things': { get: { parameters } } } })).toEqual([]);
});

test('a name that is int64 in only one schema, and an array of int64 that is not a member, are refused', () => {
  expect(() => int64MembersOf(documentOf({ id: INT64, owner: { properties: { id: { type: 'string' } } } }))).toThrow(
    'id is int64 in one schema and not in another',
  );
  const schemas = { Ids: { type: 'array', items: INT64 } };
  expect(() => int64MembersOf({ components: { schemas } })).toThrow(
    '#/components/schemas/Ids: an array of int64 is supported as a member of an object alone',
  );
});
