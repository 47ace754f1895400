import { toJsonSchema } from './json-schema.js';

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
