import type { ArgumentMetadata, Type } from '@nestjs/common';
import { PartialType } from '@nestjs/swagger';
import { Exclude, Expose, Transform, Type as Nested } from 'class-transformer';
import { IsEmail, Length, ValidateNested } from 'class-validator';
import type { ApiError } from '../errors/api-error.js';
import { InputPipe } from './input.pipe.js';
import { Int64Property, IntegerParameter, TextProperty } from './property.decorators.js';

const TEXT = { description: 'A text.', minLength: 1, maxLength: 40 };
const CLAUSE = 'must be a string of 1 to 40 characters without U+0000 and unpaired surrogates';

class NewThing {
  @TextProperty(TEXT)
  name: string;

  @Int64Property({ description: 'A number.' })
  count: bigint;
}

const pipe = new InputPipe();

/** Returns the value that a handler gets, or the message of the error. */
async function read(metatype: unknown, value: unknown, options: Partial<ArgumentMetadata> = {}): Promise<unknown> {
  try {
    return await pipe.transform(value, { type: 'body', metatype: metatype as Type, ...options });
  } catch (error) {
    return (error as ApiError).message;
  }
}

describe('a rule of class-validator is kept', () => {
  test('on a property that a subclass redeclares', async () => {
    class NewMail extends NewThing {
      @IsEmail()
      override name: string;
    }
    expect(await read(NewMail, { name: 'Rex', count: 1 })).toBe('name must be an email');
    expect(await read(NewMail, { name: 'rex@example.com', count: 1 })).toEqual({ name: 'rex@example.com', count: 1n });
    expect(await read(NewThing, { name: 'Rex', count: 1 })).toEqual({ name: 'Rex', count: 1n });
  });

  test('beside a decorator of the platform', async () => {
    class LongThing extends NewThing {
      @Length(3, 40)
      @TextProperty(TEXT)
      title: string;
    }
    expect(await read(LongThing, { name: 'Rex', count: 1, title: 'ab' })).toContain('title must be longer than');
  });
});

test('PartialType makes every property optional; with skipNullProperties: false, null is refused', async () => {
  class ThingChange extends PartialType(NewThing, { skipNullProperties: false }) {}
  expect(await read(ThingChange, { count: 1 })).toEqual({ count: 1n });
  expect(await read(ThingChange, { name: null })).toBe(`name ${CLAUSE}`);
});

test('a subclass that redeclares a property with a decorator of the platform replaces its rule', async () => {
  class Short extends NewThing {
    @TextProperty({ ...TEXT, maxLength: 2 })
    override name: string;
  }
  expect(await read(Short, { name: 'Rex', count: 1 })).toContain('name must be a string of 1 to 2 characters');
  expect(await read(Short, { name: 'Re', count: 1 })).toEqual({ name: 'Re', count: 1n });
});

test("faults of a subclass follow those of its ancestor, as in the class's schema", async () => {
  class More extends NewThing {
    @TextProperty(TEXT)
    title: string;
  }
  expect(await read(More, {})).toBe('name is required; count is required; title is required');
});

describe('decorators of class-transformer work beside those of the platform', () => {
  test('@Transform', async () => {
    class Trimmed {
      @Transform(({ value }: { value: string }) => value.trim())
      @TextProperty(TEXT)
      name: string;
    }
    expect(await read(Trimmed, { name: ' Rex ' })).toEqual({ name: 'Rex' });
  });

  test('@Expose', async () => {
    class Renamed {
      @Expose({ name: 'full_name' })
      @TextProperty(TEXT)
      name: string;
    }
    expect(await read(Renamed, { full_name: 'Rex' })).toEqual({ name: 'Rex' });
  });

  test('@Exclude', async () => {
    class Closed {
      @Exclude()
      @TextProperty({ ...TEXT, required: false })
      name?: string;
    }
    expect(await read(Closed, { name: 'Rex' })).toEqual({});
  });

  test('@Type', async () => {
    class Converted {
      @Nested(() => String)
      @TextProperty(TEXT)
      name: string;
    }
    expect(await read(Converted, { name: 7 })).toEqual({ name: '7' });
  });
});

describe('a class without rules', () => {
  class Anything {
    @Transform(({ value }: { value: string }) => value.toUpperCase())
    name: string;
  }

  test('gets all members that were sent, through class-transformer', async () => {
    const instance = await read(Anything, { name: 'Rex', other: [1] });
    expect(instance).toBeInstanceOf(Anything);
    expect(instance).toEqual({ name: 'REX', other: [1] });
    expect(await read(Anything, { name: 'Rex', page: '1' }, { type: 'query' })).toBeInstanceOf(Anything);
  });

  test.each([[[]], ['Rex'], [null], [7]])('refuses a body that is no object: %j', async (value) => {
    expect(await read(Anything, value)).toBe('the body must be a JSON object');
  });
});

describe("@Body('member')", () => {
  test('makes an instance of its class', async () => {
    const instance = await read(NewThing, { name: 'Rex', count: 1, other: 1 }, { data: 'thing' });
    expect(instance).toBeInstanceOf(NewThing);
    expect(instance).toEqual({ name: 'Rex', count: 1n });
  });

  test.each([
    [undefined, 'thing is required'],
    [7, 'thing must be a JSON object'],
    [[], 'thing must be a JSON object'],
    [{ name: '' }, `thing.name ${CLAUSE}; thing.count is required`],
  ])('refuses %j', async (value, message) => {
    expect(await read(NewThing, value, { data: 'thing' })).toBe(message);
  });
});

describe('queries', () => {
  class Page {
    @IntegerParameter({ description: 'A number.', minimum: 1, maximum: 9, required: false })
    limit?: number;
  }

  test("@Query('name') of type string may be sent only once", async () => {
    const options = { type: 'query', data: 'name' } as const;
    expect(await read(String, 'Rex', options)).toBe('Rex');
    expect(await read(String, ['Rex', 'Max'], options)).toBe("query parameter 'name' must be given only once");
    expect(await read(Object, ['Rex', 'Max'], options)).toEqual(['Rex', 'Max']);
  });

  test('at most ten unknown names are listed', async () => {
    const query = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`limi${index}`, '1']));
    const message = (await read(Page, query, { type: 'query' })) as string;
    expect(message.match(/unknown query parameter/g)).toHaveLength(10);
  });
});

test('nested objects are read and checked by class-transformer and class-validator', async () => {
  class Order {
    @ValidateNested({ each: true })
    @Nested(() => NewThing)
    things: NewThing[];
  }
  const things = [{ name: 'Rex', count: 2n ** 62n }];
  expect(await read(Order, { things })).toEqual({ things });
  expect(await read(Order, { things: [{ name: 7, count: 1 }] })).toBe(`things.0.name ${CLAUSE}`);
});
