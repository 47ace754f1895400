import { ApplicationConfig } from '@nestjs/core';
import type { Type } from '@nestjs/common';
import { IsOptional, IsString } from 'class-validator';
import type { ApiError } from '#errors';
import { InputPipe } from './input.pipe.js';
import {
  BooleanProperty,
  EnumProperty,
  Int64Parameter,
  Int64Property,
  IntegerParameter,
  IntegerProperty,
  OpaqueParameter,
  TextProperty,
} from './property.decorators.js';

const optional = { description: 'Something.', required: false };
const INT64 = 'an integer between -9223372036854775808 and 9223372036854775807';
const TEXT = 'a string of 1 to 5 characters, not blank, without NUL or unpaired surrogates';

class Everything {
  @TextProperty({ ...optional, nullable: true, minLength: 1, maxLength: 5, notBlank: true })
  note?: string | null;

  @Int64Property(optional)
  count?: bigint;

  @IntegerProperty({ ...optional, minimum: -1, maximum: 9 })
  quantity?: number;

  @BooleanProperty(optional)
  isOpen?: boolean;

  @EnumProperty({ ...optional, enum: ['red', 'blue'], enumName: 'Colour', enumSchema: { description: 'A colour.' } })
  colour?: string;
}

/** The same rules, but class-transformer reads the class and class-validator checks it. */
class Mixed extends Everything {
  @IsOptional()
  @IsString()
  word?: string;
}

class Parameters {
  @Int64Parameter({ description: 'Something.' })
  id: bigint;

  @IntegerParameter({ ...optional, minimum: 1, maximum: 100 })
  limit?: number;

  @OpaqueParameter(optional)
  cursor?: string;
}

const pipe = new InputPipe(new ApplicationConfig());

/** Returns the value that a handler gets, or the message of the error. */
async function read(metatype: unknown, value: unknown, type: 'body' | 'query' = 'body'): Promise<unknown> {
  try {
    return await pipe.transform(value, { type, metatype: metatype as Type });
  } catch (error) {
    return (error as ApiError).message;
  }
}

describe.each<[string, unknown]>([
  ['only decorators of the platform', Everything],
  ['beside class-validator', Mixed],
])('%s', (_, metatype) => {
  test.each<[object, object]>([
    [{ note: null }, { note: null }],
    [{ note: '🐕🐕🐕🐕🐕' }, { note: '🐕🐕🐕🐕🐕' }],
    [{ note: ' a ' }, { note: ' a ' }],
    [{ count: -0 }, { count: 0n }],
    [{ count: 2n ** 63n - 1n }, { count: 2n ** 63n - 1n }],
    [{ quantity: -1 }, { quantity: -1 }],
    [{ isOpen: false }, { isOpen: false }],
    [{ colour: 'red', other: 1 }, { colour: 'red' }],
  ])('accepts %j', async (sent, got) => {
    const instance = await read(metatype, sent);
    expect(instance).toBeInstanceOf(metatype);
    expect(instance).toEqual(got);
  });

  test.each<[object, string]>([
    [{ note: '' }, `note must be ${TEXT} or null`],
    [{ note: 'sixsix' }, `note must be ${TEXT} or null`],
    [{ note: '\t \u00a0' }, `note must be ${TEXT} or null`],
    [{ note: 'a\0' }, `note must be ${TEXT} or null`],
    [{ note: '\ud83d' }, `note must be ${TEXT} or null`],
    [{ note: 1 }, `note must be ${TEXT} or null`],
    [{ count: null }, `count must be ${INT64}`],
    [{ count: 1.5 }, `count must be ${INT64}`],
    [{ count: 2n ** 63n }, `count must be ${INT64}`],
    [{ count: '1' }, `count must be ${INT64}, sent as a JSON number, not a string`],
    [{ quantity: 10 }, 'quantity must be an integer between -1 and 9'],
    [{ quantity: 1.5 }, 'quantity must be an integer between -1 and 9'],
    [{ isOpen: 'true' }, 'isOpen must be true or false, not a string'],
    [{ colour: 'Red' }, 'colour must be one of red, blue'],
    [
      { colour: 1, isOpen: 1, count: [] },
      `count must be ${INT64}; isOpen must be true or false; colour must be one of red, blue`,
    ],
  ])('refuses %j: %s', async (sent, message) => {
    expect(await read(metatype, sent)).toBe(message);
  });
});

test('parameters are texts', async () => {
  expect(await read(Parameters, { id: '9223372036854775807', limit: '100' }, 'query')).toEqual({
    id: 9223372036854775807n,
    limit: 100,
  });
});

test.each<[object, string]>([
  [{ id: '07' }, `id must be ${INT64}`],
  [{ id: '9223372036854775808' }, `id must be ${INT64}`],
  [{}, 'id is required'],
  [{ id: '7', limit: '0' }, 'limit must be an integer between 1 and 100'],
  [{ id: '7', limit: '05' }, 'limit must be an integer between 1 and 100'],
  [{ id: ['7', '8'] }, "query parameter 'id' must be given only once"],
  [{ id: '7', limti: '1' }, "unknown query parameter 'limti'; did you mean 'limit'?"],
])('the query %j is refused: %s', async (sent, message) => {
  expect(await read(Parameters, sent, 'query')).toBe(message);
});

test('a default is in the document, and a missing member gets the initial value of the class', async () => {
  class Defaults {
    @Int64Property({ ...optional, default: 7 })
    id = 7n;
  }
  expect(await read(Defaults, {})).toEqual({ id: 7n });
  expect(Reflect.getMetadata('swagger/apiModelProperties', Defaults.prototype, 'id')).toMatchObject({
    type: 'integer',
    format: 'int64',
    default: 7,
    required: false,
  });
});

test('the pattern of a text that is not blank accepts the characters that the rule accepts', async () => {
  const { pattern } = Reflect.getMetadata('swagger/apiModelProperties', Everything.prototype, 'note') as {
    pattern: string;
  };
  const different: string[] = [];
  for (let code = 0; code <= 0xffff; code++) {
    // Half a surrogate pair is no character.
    if (code >= 0xd800 && code <= 0xdfff) continue;
    for (const note of [String.fromCharCode(code), ` ${String.fromCharCode(code)}\n`]) {
      const isAccepted = typeof (await read(Everything, { note })) === 'object';
      for (const flags of ['', 'u']) {
        if (new RegExp(pattern, flags).test(note) !== isAccepted) different.push(code.toString(16));
      }
    }
  }
  expect(different).toEqual([]);
});
