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
  ['its own example, the first', { type: 'string', examples: ['a', 'b'] }, 'a'],
  ['its own before those of its members', { ...SCHEMAS.Toy, examples: [{ name: 'Max' }] }, { name: 'Max' }],
  ['its own beside a reference', { $ref: '#/components/schemas/Name', examples: ['Max'] }, 'Max'],
  ['that of what it refers to', { $ref: '#/components/schemas/Name' }, 'Rex'],
  ['the members that have one', SCHEMAS.Toy, { name: 'Rex' }],
  ['one item', { type: 'array', items: { $ref: '#/components/schemas/Toy' } }, [{ name: 'Rex' }]],
  ['none without one for a required member', { ...SCHEMAS.Toy, required: ['name', 'size'] }, undefined],
  ['none without one for the items', { type: 'array', items: { type: 'string' } }, undefined],
  ['none of a scalar without one', { type: 'string' }, undefined],
  ['none of an unknown reference', { $ref: '#/components/schemas/Unknown' }, undefined],
  ['a schema that refers to itself, once', { $ref: '#/components/schemas/Folder' }, { name: 'Rex' }],
  ['none without a schema', undefined, undefined],
  ['falsy ones, too', { type: 'object', properties: { count: { type: 'integer', examples: [0] } } }, { count: 0 }],
])('an example of a schema: %s', (_, schema, expected) => {
  expect(exampleOf(schema, SCHEMAS)).toEqual(expected);
});
