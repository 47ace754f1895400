import { exampleOf, toJsonSchema } from './json-schema.js';

describe('toJsonSchema', () => {
  test('drops the reference of @nestjs/swagger to a type that it does not know', () => {
    const reference = { $ref: '#/components/schemas/Object' };
    expect(toJsonSchema({ minimum: 1, allOf: [reference] })).toEqual({ minimum: 1 });
    expect(toJsonSchema({ ...reference, minimum: 1 })).toEqual({ minimum: 1 });
  });

  test('turns exclusive limits into numbers', () => {
    const schema = { type: 'number', minimum: 0, exclusiveMinimum: true, maximum: 9 };
    expect(toJsonSchema(schema)).toEqual({ type: 'number', exclusiveMinimum: 0, maximum: 9 });
  });

  test('keeps an allOf of several schemas', () => {
    const allOf = [
      { $ref: '#/components/schemas/Owner' },
      { type: 'object', properties: { fur: { type: 'string', example: 'red' } } },
    ];
    expect(toJsonSchema({ allOf })).toEqual({
      allOf: [allOf[0], { type: 'object', properties: { fur: { type: 'string', examples: ['red'] } } }],
    });
  });
});

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
  ['its own, beside a reference', { $ref: '#/components/schemas/Name', examples: ['Max'] }, 'Max'],
  ['that of its reference', { $ref: '#/components/schemas/Name' }, 'Rex'],
  ['an object of the members that have examples', SCHEMAS.Toy, { name: 'Rex' }],
  ['missing, because a required member has none', { ...SCHEMAS.Toy, required: ['name', 'size'] }, undefined],
  ['missing, because the reference is unknown', { $ref: '#/components/schemas/Unknown' }, undefined],
  ['without the member that refers to itself', { $ref: '#/components/schemas/Folder' }, { name: 'Rex' }],
  ['also a falsy value', { type: 'object', properties: { count: { type: 'integer', examples: [0] } } }, { count: 0 }],
])('the example of a schema is %s', (_, schema, expected) => {
  expect(exampleOf(schema, SCHEMAS)).toEqual(expected);
});
