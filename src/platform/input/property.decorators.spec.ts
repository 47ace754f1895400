import type { Type } from '@nestjs/common';
import { PartialType } from '@nestjs/swagger';
import { Type as Nested } from 'class-transformer';
import { IsOptional, IsString, ValidateNested } from 'class-validator';
import type { ApiError } from '../errors/api-error.js';
import { InputPipe } from './input.pipe.js';
import { object } from './properties/structures.js';
import { int64, oneOf, text } from './properties/values.js';
import {
  ArrayProperty,
  BooleanParameter,
  BooleanProperty,
  DateProperty,
  DateTimeProperty,
  DecimalProperty,
  Int64Parameter,
  Int64Property,
  IntegerProperty,
  NumberProperty,
  ObjectProperty,
  TextProperty,
} from './property.decorators.js';

const description = 'Something.';
const INT64 = 'an integer between -9223372036854775808 and 9223372036854775807';
const TEXT = 'a string of 1 to 5 characters without U+0000 and unpaired surrogates';
const DATE = 'a date such as 2026-02-28';
const DATE_TIME = 'a date and time with its offset, such as 2026-02-28T09:30:00Z or 2026-02-28T09:30:00+01:00';
const PRICE = 'a decimal number as a JSON string, with up to 6 digits before and 2 behind the point, at least 0';
const WEIGHT = 'a number, with up to 3 digits before and 3 behind the point, between 0.5 and 900';

class Part {
  @IntegerProperty({ description, minimum: 1, maximum: 9 })
  quantity: number;

  @ObjectProperty(() => Part, { description, required: false })
  inner?: Part;
}

class Everything {
  @DateProperty({ description, required: false })
  day?: string;

  @DateTimeProperty({ description, required: false })
  at?: Date;

  @DecimalProperty({ description, required: false, precision: 8, scale: 2, minimum: '0' })
  price?: string;

  @NumberProperty({ description, required: false, precision: 6, scale: 3, minimum: '0.5', maximum: '900' })
  weight?: number;

  @BooleanProperty({ description, required: false })
  isOpen?: boolean;

  @TextProperty({ description, required: false, nullable: true, minLength: 1, maxLength: 5 })
  note?: string | null;

  @Int64Property({ description, required: false })
  count?: bigint;

  @ObjectProperty(() => Part, { description, required: false, nullable: true })
  part?: Part | null;

  @ArrayProperty({ description, required: false, items: object(() => Part), minItems: 1, maxItems: 3 })
  parts?: Part[];

  @ArrayProperty({
    description,
    required: false,
    items: text({ minLength: 1, maxLength: 5 }),
    minItems: 0,
    maxItems: 2,
  })
  tags?: string[];

  @ArrayProperty({ description, required: false, nullable: true, items: int64(), minItems: 0, maxItems: 2 })
  ids?: bigint[] | null;
}

/** The same class, but class-transformer reads it and class-validator checks it. */
class Mixed extends Everything {
  @IsOptional()
  @IsString()
  word?: string;
}

/** A class with nested classes that have rules of class-validator. */
class MixedPart extends Part {
  @IsOptional()
  @IsString()
  word?: string;
}

class Nesting {
  @ObjectProperty(() => MixedPart, { description, required: false, nullable: true })
  part?: MixedPart | null;

  @ArrayProperty({ description, required: false, items: object(() => MixedPart), minItems: 1, maxItems: 3 })
  parts?: MixedPart[];
}

const pipe = new InputPipe();

/** Returns the value that a handler gets, or the message of the error. */
async function read(metatype: unknown, value: unknown, type: 'body' | 'query' | 'param' = 'body'): Promise<unknown> {
  try {
    return await pipe.transform(value, { type, metatype: metatype as Type });
  } catch (error) {
    return (error as ApiError).message;
  }
}

const CLASSES: [string, unknown][] = [
  ['only decorators of the platform', Everything],
  ['beside class-validator', Mixed],
];

describe.each(CLASSES)('%s', (_, metatype) => {
  test.each<[object, object]>([
    [{ day: '2028-02-29' }, { day: '2028-02-29' }],
    [{ day: '0001-01-01' }, { day: '0001-01-01' }],
    [{ at: '2026-02-28T09:30:00Z' }, { at: new Date('2026-02-28T09:30:00Z') }],
    [{ at: '2026-02-28t09:30:00.123456789+01:30' }, { at: new Date('2026-02-28T08:00:00.123Z') }],
    [{ at: '2026-02-28T09:30:00-00:00' }, { at: new Date('2026-02-28T09:30:00Z') }],
    [{ at: '2016-12-31T18:59:60.5-05:00' }, { at: new Date('2017-01-01T00:00:00Z') }],
    [{ price: '12.5' }, { price: '12.50' }],
    [{ price: '999999.99' }, { price: '999999.99' }],
    [{ price: '0' }, { price: '0.00' }],
    [{ weight: 0.5 }, { weight: 0.5 }],
    [{ weight: 899.999 }, { weight: 899.999 }],
    [{ isOpen: false }, { isOpen: false }],
    [{ note: null }, { note: null }],
    [{ note: 'abc' }, { note: 'abc' }],
    [{ part: null }, { part: null }],
    [{ part: { quantity: 1, more: 1 } }, { part: { quantity: 1 } }],
    [{ part: { quantity: 1, inner: { quantity: 2 } } }, { part: { quantity: 1, inner: { quantity: 2 } } }],
    [{ parts: [{ quantity: 1 }] }, { parts: [{ quantity: 1 }] }],
    [{ tags: [] }, { tags: [] }],
    [{ ids: [1, 2n ** 53n + 1n] }, { ids: [1n, 2n ** 53n + 1n] }],
    [{ ids: null }, { ids: null }],
  ])('accepts %j', async (sent, got) => {
    const instance = await read(metatype, sent);
    expect(instance).toBeInstanceOf(metatype);
    // toEqual ignores the undefined members that class-transformer adds.
    expect(instance).toEqual(got);
  });

  test('nested objects are instances of their classes', async () => {
    const sent = { part: { quantity: 1, inner: { quantity: 1 } }, parts: [{ quantity: 1 }] };
    const { part, parts } = (await read(metatype, sent)) as Everything;
    for (const each of [part, part?.inner, parts?.[0]]) expect(each).toBeInstanceOf(Part);
  });

  test.each<[object, string]>([
    [{ day: '2026-02-29' }, `day must be ${DATE}`],
    [{ day: '2020-02-31' }, `day must be ${DATE}`],
    [{ day: '0000-01-01' }, `day must be ${DATE}`],
    [{ day: '2026-2-1' }, `day must be ${DATE}`],
    [{ day: '2026-02-28T00:00:00Z' }, `day must be ${DATE}`],
    [{ day: 1 }, `day must be ${DATE}`],
    [{ at: '2026-02-28T09:30:00' }, `at must be ${DATE_TIME}`],
    [{ at: '2026-02-28 09:30:00Z' }, `at must be ${DATE_TIME}`],
    [{ at: '2026-02-29T09:30:00Z' }, `at must be ${DATE_TIME}`],
    [{ at: '2026-02-28T24:00:00Z' }, `at must be ${DATE_TIME}`],
    [{ at: '2026-02-28T09:30:60Z' }, `at must be ${DATE_TIME}`],
    [{ at: '2026-02-28T09:30Z' }, `at must be ${DATE_TIME}`],
    [{ at: '2026-02-28T09:30:00+0100' }, `at must be ${DATE_TIME}`],
    [{ at: '9999-12-31T23:59:59-01:00' }, `at must be ${DATE_TIME}`],
    [{ at: '0001-01-01T00:00:00+01:00' }, `at must be ${DATE_TIME}`],
    [{ at: 1_772_000_000 }, `at must be ${DATE_TIME}`],
    [{ price: 12.5 }, `price must be ${PRICE}`],
    [{ price: '-1' }, `price must be ${PRICE}`],
    [{ price: '12.505' }, `price must be ${PRICE}`],
    [{ price: '1234567' }, `price must be ${PRICE}`],
    [{ price: '012.5' }, `price must be ${PRICE}`],
    [{ price: '1e2' }, `price must be ${PRICE}`],
    [{ price: '.5' }, `price must be ${PRICE}`],
    [{ price: '5.' }, `price must be ${PRICE}`],
    [{ weight: 0.499 }, `weight must be ${WEIGHT}`],
    [{ weight: 900.001 }, `weight must be ${WEIGHT}`],
    [{ weight: 1.0001 }, `weight must be ${WEIGHT}`],
    [{ weight: 1e-7 }, `weight must be ${WEIGHT}`],
    [{ weight: NaN }, `weight must be ${WEIGHT}`],
    [{ weight: 10n ** 20n }, `weight must be ${WEIGHT}`],
    [{ weight: '1' }, `weight must be ${WEIGHT}, sent as a JSON number, not a string`],
    [{ isOpen: 'true' }, 'isOpen must be true or false, not a string'],
    [{ isOpen: null }, 'isOpen must be true or false'],
    [{ note: '' }, `note must be ${TEXT} or null`],
    [{ count: null }, `count must be ${INT64}`],
    [{ part: 'x' }, 'part must be a JSON object or null'],
    [{ part: [{ quantity: 1 }] }, 'part must be a JSON object or null'],
    [{ part: {} }, 'part.quantity is required'],
    [
      { part: { quantity: 1, inner: { quantity: '1' } } },
      `part.inner.quantity must be an integer between 1 and 9, sent as a JSON number, not a string`,
    ],
    [{ part: { quantity: 1, inner: null } }, 'part.inner must be a JSON object'],
    [{ parts: null }, 'parts must be a JSON array of 1 to 3 items'],
    [{ parts: { 0: { quantity: 1 } } }, 'parts must be a JSON array of 1 to 3 items'],
    [{ parts: [] }, 'parts must be a JSON array of 1 to 3 items'],
    [
      { parts: [{ quantity: 1 }, {}, { quantity: 10 }] },
      'parts[1].quantity is required; parts[2].quantity must be an integer between 1 and 9',
    ],
    [{ parts: [{ quantity: 1 }, null, 7] }, 'parts[1] must be a JSON object; parts[2] must be a JSON object'],
    [{ tags: ['a', 7] }, `tags[1] must be ${TEXT}`],
    [{ tags: 'a' }, 'tags must be a JSON array of 0 to 2 items'],
    [{ tags: ['a', 'b', 'c'] }, 'tags must be a JSON array of 0 to 2 items'],
    [{ ids: [1.5, '1'] }, `ids[0] must be ${INT64}; ids[1] must be ${INT64}, sent as a JSON number, not a string`],
    [{ ids: 1 }, 'ids must be a JSON array of 0 to 2 items or null'],
  ])('refuses %j: %s', async (sent, message) => {
    expect(await read(metatype, sent)).toBe(message);
  });
});

describe('classes with rules of class-validator, nested by decorators of the platform', () => {
  test('are read and checked', async () => {
    const nesting = (await read(Nesting, { part: null, parts: [{ quantity: 1, word: 'a', more: 1 }] })) as Nesting;
    expect(nesting).toEqual({ part: null, parts: [{ quantity: 1, word: 'a' }] });
    expect(nesting.parts?.[0]).toBeInstanceOf(MixedPart);
  });

  test.each<[object, string]>([
    [{ part: { quantity: 1, word: 1 } }, 'part.word must be a string'],
    [{ part: [] }, 'part must be a JSON object or null'],
    [{ parts: [{ quantity: 1 }, { word: 1 }] }, 'parts[1].word must be a string; parts[1].quantity is required'],
    [{ parts: [{ quantity: 1 }, null] }, 'parts[1] must be a JSON object'],
    [{ parts: [] }, 'parts must be a JSON array of 1 to 3 items'],
  ])('refuse %j: %s', async (sent, message) => {
    expect(await read(Nesting, sent)).toBe(message);
  });
});

test('null does not count as missing, also in classes of @ValidateNested', async () => {
  class Change extends PartialType(Part) {
    @IsOptional()
    @TextProperty({ description, minLength: 1, maxLength: 5 })
    name?: string;
  }
  class Outer {
    @ValidateNested()
    @Nested(() => Change)
    change: Change;

    @ValidateNested({ each: true })
    @Nested(() => Change)
    changes: Change[];
  }
  expect(await read(Outer, { change: {}, changes: [{ name: 'a' }] })).toEqual({ change: {}, changes: [{ name: 'a' }] });
  expect(await read(Outer, { change: { name: null }, changes: [{}, { quantity: null }] })).toBe(
    `change.name must be ${TEXT}; changes[1].quantity must be an integer between 1 and 9`,
  );
});

test("the clause of the platform's decorator, which is about the type, precedes those of others", async () => {
  class Word {
    @TextProperty({ description, minLength: 1, maxLength: 5 })
    @IsString({ message: 'another clause' })
    word: unknown;
  }
  expect(await read(Word, { word: 7 })).toBe(`word must be ${TEXT}`);
});

test('at most 100 faults are listed, also in nested arrays', async () => {
  class Row {
    @ArrayProperty({ description, items: int64(), minItems: 0, maxItems: 90 })
    cells: bigint[];
  }
  class Table {
    @ArrayProperty({ description, items: object(() => Row), minItems: 0, maxItems: 90 })
    rows: Row[];
  }
  const rows = Array.from({ length: 80 }, () => ({ cells: Array.from({ length: 80 }, () => 'x') }));
  const message = (await read(Table, { rows })) as string;
  expect(message.split('; ')).toHaveLength(100);
  expect(message).toMatch(/^rows\[0\]\.cells\[0\] must be/);
});

test('contradictory limits of a decimal are refused when they are declared', () => {
  expect(() => DecimalProperty({ description, precision: 2, scale: 3 })).toThrow('a scale of 0 to its precision');
  expect(() => DecimalProperty({ description, precision: 4, scale: 2, maximum: '100' })).toThrow('100 is no decimal');
  expect(() => NumberProperty({ description, precision: 16, scale: 2 })).toThrow('a precision of 1 to 15 digits');
});

test.each([
  [{ precision: 3, scale: 3 }, '0.125', '1'],
  [{ precision: 2, scale: 1 }, '-9.9', '10'],
  [{ precision: 3, scale: 0 }, '-120', '1.0'],
  [{ precision: 30, scale: 10 }, '12345678901234567890.0123456789', '123456789012345678901'],
])('decimals with %j accept %s, not %s', async (limits, valid, invalid) => {
  class Amount {
    @DecimalProperty({ description, ...limits })
    amount: string;
  }
  expect(await read(Amount, { amount: valid })).toEqual({ amount: valid });
  expect(await read(Amount, { amount: invalid })).toContain('amount must be a');
  expect(await read(Amount, { amount: '-0' })).toEqual({
    amount: limits.scale === 0 ? '0' : `0.${'0'.repeat(limits.scale)}`,
  });
});

describe('parameters', () => {
  class Parameters {
    @Int64Parameter({ description })
    id: bigint;

    @BooleanParameter({ description, required: false })
    isOpen?: boolean;

    @ArrayProperty({
      description,
      required: false,
      items: oneOf({ enum: ['red', 'blue'], enumName: 'Colour', enumSchema: { description } }),
      minItems: 1,
      maxItems: 2,
    })
    colour?: string[];
  }

  test('are texts, and arrays of them', async () => {
    const id = 9223372036854775807n;
    expect(await read(Parameters, { id: String(id), isOpen: 'false', colour: 'red' }, 'query')).toEqual({
      id,
      isOpen: false,
      colour: ['red'],
    });
    expect(await read(Parameters, { id: '7', colour: ['red', 'blue'] }, 'query')).toEqual({
      id: 7n,
      colour: ['red', 'blue'],
    });
    expect(await read(Parameters, { id: '-7' }, 'param')).toEqual({ id: -7n });
  });

  test.each<[object, string]>([
    [{ id: '07' }, `id must be ${INT64}`],
    [{ id: '9223372036854775808' }, `id must be ${INT64}`],
    [{ id: '7', isOpen: '1' }, 'isOpen must be true or false'],
    [{ id: '7', colour: ['red', 'green'] }, 'colour[1] must be one of red, blue'],
    [{ id: ['7', '8'] }, "query parameter 'id' must be given only once"],
  ])('refuse %j: %s', async (sent, message) => {
    expect(await read(Parameters, sent, 'query')).toBe(message);
  });
});

test('a default is in the document, and a missing member gets the initial value of the class', async () => {
  const optional = { description, required: false };
  class Defaults {
    @TextProperty({ ...optional, minLength: 0, maxLength: 9, default: 'a' })
    text = 'a';

    @Int64Property({ ...optional, default: 7 })
    id = 7n;

    @DecimalProperty({ ...optional, precision: 8, scale: 2, default: '0.00' })
    price = '0.00';

    @NumberProperty({ ...optional, precision: 6, scale: 3, default: 1.5 })
    weight = 1.5;

    @DateProperty({ ...optional, default: '2026-02-28' })
    day = '2026-02-28';

    @DateTimeProperty({ ...optional, default: '2026-02-28T09:30:00Z' })
    at = new Date('2026-02-28T09:30:00Z');

    @ArrayProperty({ ...optional, items: int64(), minItems: 0, maxItems: 9, default: [] })
    ids: bigint[] = [];
  }

  expect(await read(Defaults, {})).toEqual({ ...new Defaults() });
  const defaults = ['text', 'id', 'price', 'weight', 'day', 'at', 'ids'].map(
    (name) =>
      (Reflect.getMetadata('swagger/apiModelProperties', Defaults.prototype, name) as { default: unknown }).default,
  );
  expect(defaults).toEqual(['a', 7, '0.00', 1.5, '2026-02-28', '2026-02-28T09:30:00Z', []]);
});
