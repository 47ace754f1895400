import { exampleOf } from './examples.js';

const SCHEMAS = {
  Name: { type: 'string', examples: ['Rex', 'Tom'] },
  Toy: {
    type: 'object',
    required: ['name'],
    properties: { name: { $ref: '#/components/schemas/Name' }, size: { type: 'integer' } },
  },
  Folder: {
    type: 'object',
    required: ['name'],
    properties: {
      name: { $ref: '#/components/schemas/Name' },
      folders: { type: 'array', items: { $ref: '#/components/schemas/Folder' } },
    },
  },
};

test.each([
  ['the first of its own', { type: 'string', examples: ['a', 'b'] }, 'a'],
  ['its own, not one of its members', { ...SCHEMAS.Toy, examples: [{ name: 'Max' }] }, { name: 'Max' }],
  ['its own, beside a reference', { $ref: '#/components/schemas/Name', examples: ['Max'] }, 'Max'],
  ['that of its reference', { $ref: '#/components/schemas/Name' }, 'Rex'],
  ['an object of the members that have examples', SCHEMAS.Toy, { name: 'Rex' }],
  ['an array with one item', { type: 'array', items: { $ref: '#/components/schemas/Toy' } }, [{ name: 'Rex' }]],
  ['missing, because a required member has none', { ...SCHEMAS.Toy, required: ['name', 'size'] }, undefined],
  ['missing, because the items have none', { type: 'array', items: { type: 'string' } }, undefined],
  ['missing, because a scalar has none', { type: 'string' }, undefined],
  ['missing, because the reference is unknown', { $ref: '#/components/schemas/Unknown' }, undefined],
  ['without the member that refers to itself', { $ref: '#/components/schemas/Folder' }, { name: 'Rex' }],
  ['missing, because there is no schema', undefined, undefined],
  ['also a falsy value', { type: 'object', properties: { count: { type: 'integer', examples: [0] } } }, { count: 0 }],
])('the example of a schema is %s', (_, schema, expected) => {
  expect(exampleOf(schema, SCHEMAS)).toEqual(expected);
});
