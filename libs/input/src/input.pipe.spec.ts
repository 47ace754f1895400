import { type ArgumentMetadata, Body, Param, Query, type Type, ValidationPipe } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { IsEmail, Length } from 'class-validator';
import type { ApiError } from '#errors';
import { InputPipe } from './input.pipe.js';
import { Int64Property, TextProperty } from './property.decorators.js';

const TEXT = { description: 'A text.', minLength: 1, maxLength: 40 };

class NewThing {
  @TextProperty(TEXT) name: string;
  @Int64Property({ description: 'A number.' }) count: bigint;
}

class Note {
  @TextProperty({ ...TEXT, maxLength: 5, notBlank: true }) note: string;
}

const pipe = new InputPipe(new ApplicationConfig());

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
      @IsEmail() override name: string;
    }
    expect(await read(NewMail, { name: 'Rex', count: 1 })).toBe('name must be an email');
    expect(await read(NewMail, { name: 'rex@example.com', count: 1 })).toEqual({ name: 'rex@example.com', count: 1n });
    expect(await read(NewThing, { name: 'Rex', count: 1 })).toEqual({ name: 'Rex', count: 1n });
  });

  test('beside a decorator of the platform', async () => {
    class LongThing extends NewThing {
      @Length(3, 40) @TextProperty(TEXT) title: string;
    }
    expect(await read(LongThing, { name: 'Rex', count: 1, title: 'ab' })).toContain('title must be longer than');
  });
});

test('a subclass that redeclares a property with a decorator of the platform replaces its rule', async () => {
  class Short extends NewThing {
    @TextProperty({ ...TEXT, maxLength: 2 }) override name: string;
  }
  expect(await read(Short, { name: 'Rex', count: 1 })).toContain('name must be a string of 1 to 2 characters');
  expect(await read(Short, { name: 'Re', count: 1 })).toEqual({ name: 'Re', count: 1n });
});

test("faults of a subclass follow those of its ancestor, as in the class's schema", async () => {
  class More extends NewThing {
    @TextProperty(TEXT) title: string;
  }
  expect(await read(More, {})).toBe('name is required; count is required; title is required');
});

test("@Query('name') of type string may be sent only once", async () => {
  const options = { type: 'query', data: 'name' } as const;
  expect(await read(String, 'Rex', options)).toBe('Rex');
  expect(await read(String, ['Rex', 'Max'], options)).toBe("query parameter 'name' must be given only once");
  expect(await read(Object, ['Rex', 'Max'], options)).toEqual(['Rex', 'Max']);
});

test('the pattern of a text that is not blank accepts the characters that the rule accepts', async () => {
  const { pattern } = Reflect.getMetadata('swagger/apiModelProperties', Note.prototype, 'note') as {
    pattern: string;
  };
  const different: string[] = [];
  for (let code = 0; code <= 0xffff; code++) {
    // Half a surrogate pair is no character.
    if (code >= 0xd800 && code <= 0xdfff) continue;
    for (const note of [String.fromCharCode(code), ` ${String.fromCharCode(code)}\n`]) {
      const isAccepted = typeof (await read(Note, { note })) === 'object';
      for (const flags of ['', 'u']) {
        if (new RegExp(pattern, flags).test(note) !== isAccepted) different.push(code.toString(16));
      }
    }
  }
  expect(different).toEqual([]);
});

test('at start, parameters whose types the compiler has left out are refused, unless they have a pipe of their own', () => {
  class NotesController {
    create(@Body() note: Note): Note {
      return note;
    }

    find(@Query('author') author: string): string {
      return author;
    }

    checked(@Body(new ValidationPipe({ expectedType: Note })) note: Note, @Param('id') id: string): [Note, string] {
      return [note, id];
    }
  }
  const discovery = { getControllers: () => [{ metatype: NotesController }] };
  const start = (): void => {
    const started = new InputPipe(new ApplicationConfig());
    Object.assign(started, { discovery });
    started.onModuleInit();
  };

  expect(start).not.toThrow();
  // As tsx and esbuild compile the class.
  for (const name of ['create', 'find', 'checked'])
    Reflect.deleteMetadata('design:paramtypes', NotesController.prototype, name);
  expect(start).toThrow(
    'Nothing would check the input of NotesController.create, NotesController.find, because the compiler has left out its types. ' +
      'tsc and nest build keep them by emitDecoratorMetadata, SWC by decoratorMetadata; tsx and esbuild cannot.',
  );
});
