import {
  Body,
  type CanActivate,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  HttpCode,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Param,
  ParseIntPipe,
  Post,
  Req,
  RequestMethod,
  UseGuards,
} from '@nestjs/common';
import type { Request } from 'express';
import { Int64Property, TextProperty } from '../../src/platform/input/property.decorators.js';
import { MAX_JSON_VALUES } from '../../src/platform/json/reader/json-reader.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* The input of handlers of modules, and the declarations with which the start fails. */

class NewNote {
  @TextProperty({ description: 'A text.', minLength: 1, maxLength: 40 })
  text: string;

  @Int64Property({ description: 'A number.', required: false })
  number?: bigint;
}

/** A parameter decorator of the module that returns `request.body`. */
const SentBody = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  return execution.switchToHttp().getRequest<Request>().body as Promise<unknown>;
});

class ReadingGuard implements CanActivate {
  async canActivate(execution: ExecutionContext): Promise<boolean> {
    await (execution.switchToHttp().getRequest<Request>().body as Promise<unknown>);
    return true;
  }
}

@Controller('test-notes')
class TestNotesController {
  @Post()
  @HttpCode(200)
  addNote(@Body() note: NewNote, @SentBody() sent: unknown): unknown {
    return { note, isNote: note instanceof NewNote, sent };
  }

  @Post('parts')
  @HttpCode(200)
  addParts(
    @Body('note') note: NewNote,
    @Body('count', ParseIntPipe) count: number,
    @Body('any') any: unknown,
  ): unknown {
    return { note, isNote: note instanceof NewNote, count, any };
  }

  @Post('one')
  @HttpCode(200)
  addOne(@Body('note') note: NewNote): unknown {
    return { note };
  }

  @Post('looked-at')
  @HttpCode(200)
  addLookedAt(@Body('note') note: NewNote): unknown {
    return { note };
  }

  @Post('any')
  @HttpCode(200)
  addAny(@Body() any: unknown): unknown {
    return { any };
  }

  @Post('count')
  @HttpCode(200)
  countAny(@Body() any: unknown): unknown {
    return { count: (any as unknown[]).length };
  }

  @Post('guarded')
  @HttpCode(200)
  @UseGuards(ReadingGuard)
  addGuarded(@Body() note: NewNote): unknown {
    return { note };
  }

  @Post('request')
  @HttpCode(200)
  async addFromRequest(@Req() request: Request): Promise<unknown> {
    return { any: (await (request.body as Promise<unknown>)) as object };
  }
}

@Module({ controllers: [TestNotesController] })
class NotesModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    const lookAtBody = (request: Request, _: unknown, next: () => void): void => {
      void request.body;
      next();
    };
    consumer.apply(lookAtBody).forRoutes({ path: 'test-notes/looked-at', method: RequestMethod.POST, version: '1' });
  }
}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [NotesModule] });
});
afterAll(() => app.close());

const post = async (path: string, body: unknown): Promise<unknown> => {
  const answer = await app.client.post(`/v1/test-notes${path}`, body);
  return answer.status === 200 ? answer.json : `${answer.status} ${answer.json.code}: ${answer.json.message}`;
};

const BODY = '{"x":{"y":[1]},"text":"a","number":9007199254740993,"z":1}';

test('a class of scalars gets its members, and the rest of the body is not built', async () => {
  const note = { text: 'a', number: 9007199254740993n };
  expect(await post('', BODY)).toEqual({ note, isNote: true, sent: note });
  expect(await post('', '{"text":{"a":[1]}}')).toBe(
    '400 validation_failed: text must be a string of 1 to 40 characters without U+0000 and unpaired surrogates',
  );
  expect(await post('', '[{"text":"a"}]')).toBe('400 validation_failed: the body must be a JSON object');
  expect(await post('', '{"x":{"y":1,"y":2},"text":"a"}')).toContain('400 malformed_json');
});

test('a body that is read before its handler, or without a class, is read completely', async () => {
  const any = { x: { y: [1] }, text: 'a', number: 9007199254740993n, z: 1 };
  expect(await post('/any', BODY)).toEqual({ any });
  expect(await post('/request', BODY)).toEqual({ any });
  expect(await post('/guarded', BODY)).toEqual({ note: { text: 'a', number: 9007199254740993n } });
});

test(`400 malformed_json: a body that is read completely has more than ${MAX_JSON_VALUES} values`, async () => {
  const values = (count: number): string => `[${Array.from({ length: count }, () => '{}').join()}]`;
  expect(await post('/count', values(MAX_JSON_VALUES - 1))).toEqual({ count: MAX_JSON_VALUES - 1 });
  expect(await post('/count', values(MAX_JSON_VALUES))).toContain('400 malformed_json');
  expect(await post('', `{"text":"a","x":${values(MAX_JSON_VALUES)}}`)).toMatchObject({ note: { text: 'a' } });
});

describe("@Body('member')", () => {
  test('gives the member, checked by its declared class', async () => {
    const sent = { note: { text: 'a', more: 1 }, count: '7', any: { c: [1] } };
    expect(await post('/parts', sent)).toEqual({
      note: { text: 'a' },
      isNote: true,

      count: 7,
      any: { c: [1] },
    });
    expect(await post('/one', sent)).toEqual({ note: { text: 'a' } });
    // A middleware has begun to read the body before the handler is known.
    expect(await post('/looked-at', sent)).toEqual({ note: { text: 'a' } });
  });

  test.each<[string, unknown, string]>([
    ['/parts', { note: { text: '' }, count: '7' }, '400 validation_failed: note.text must be'],
    ['/parts', { note: { text: 'a' }, count: 'b' }, '400'],
    ['/parts', { count: '7' }, '400 validation_failed: note is required'],
    ['/parts', [], '400 validation_failed: note is required'],
    ['/parts', '{"note":', '400 malformed_json'],
    ['/one', '7', '400 validation_failed: note is required'],
    ['/one', '{"note":', '400 malformed_json'],
  ])('%s refuses %j: %s', async (path, body, expected) => {
    expect(await post(path, body)).toContain(expected);
  });
});

test('the start fails with one sentence when a declared type of a handler would not be checked', async () => {
  @Controller('test-papers')
  class TestPapersController {
    @Post(':number')
    addPaper(@Param('number') parameters: NewNote): unknown {
      return parameters;
    }
  }
  @Module({ controllers: [TestPapersController] })
  class PapersModule {}
  await expect(createTestApp({ features: [PapersModule] })).rejects.toThrow(
    "@Param('number') of TestPapersController.addPaper is declared as NewNote, which nothing would check. " +
      'Take each value by its name, or use a pipe.',
  );
});
