import { exampleOf, toJsonSchema } from './json-schema.js';

describe('toJsonSchema', () => {
  test('turns an allOf with one reference into a reference with siblings', () => {
    const schema = { description: 'Its status.', default: 'new', allOf: [{ $ref: '#/components/schemas/Status' }] };
    expect(toJsonSchema(schema)).toEqual({
      $ref: '#/components/schemas/Status',
      description: 'Its status.',
      default: 'new',
    });
  });

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

  test('turns example into examples at every depth, but not a property with that name', () => {
    const schema = {
      type: 'object',
      properties: { example: { type: 'array', items: { type: 'integer', example: 0 } } },
    };
    expect(toJsonSchema(schema)).toEqual({
      type: 'object',
      properties: { example: { type: 'array', items: { type: 'integer', examples: [0] } } },
    });
  });

  test('moves the default of an optional member, and keeps all other defaults', () => {
    const properties = {
      colour: { type: 'string', default: 'red' },
      status: { default: 'new', allOf: [{ $ref: '#/components/schemas/Status' }] },
      size: { type: 'integer', default: 1 },
    };
    expect(toJsonSchema({ type: 'object', required: ['size'], properties })).toEqual({
      type: 'object',
      required: ['size'],
      properties: {
        colour: { type: 'string', allOf: [{ default: 'red' }] },
        status: { $ref: '#/components/schemas/Status', allOf: [{ default: 'new' }] },
        size: { type: 'integer', default: 1 },
      },
    });
  });

  test('removes properties from an array', () => {
    expect(toJsonSchema({ type: 'array', items: { type: 'string' }, properties: {} })).toEqual({
      type: 'array',
      items: { type: 'string' },
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
