import {
  Body,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  HttpCode,
  Module,
  ParseIntPipe,
  Post,
} from '@nestjs/common';
import type { Request } from 'express';
import { Int64Property, TextProperty } from '#input';
import { RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';

/* The input of handlers of modules. */

class NewNote {
  @TextProperty({ description: 'A text.', minLength: 1, maxLength: 40 })
  text: string;

  @Int64Property({ description: 'A number.', required: false })
  number?: bigint;
}

/** A parameter decorator of the module that returns `request.body`. */
const SentBody = createParamDecorator((_: unknown, execution: ExecutionContext) => {
  return execution.switchToHttp().getRequest<Request>().body as unknown;
});

@Controller('test-notes')
@RequireScopes()
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

  @Post('any')
  @HttpCode(200)
  addAny(@Body() any: unknown): unknown {
    return { any };
  }
}

@Module({ controllers: [TestNotesController] })
class NotesModule {}

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

test('a class gets its members, and a decorator of the module the whole body', async () => {
  // What JSON.parse gives: only a declared int64 is exact.
  const any = { x: { y: [1] }, text: 'a', number: 9007199254740992n, z: 1 };
  const note = { text: 'a', number: 9007199254740993n };
  expect(await post('', BODY)).toEqual({ note, isNote: true, sent: any });
  expect(await post('/any', BODY)).toEqual({ any });
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
  });

  test.each<[unknown, string]>([
    [{ note: { text: '' }, count: '7' }, '400 validation_failed: note.text must be'],
    [{ note: 7, count: '7' }, '400 validation_failed: note must be a JSON object'],
    [{ note: { text: 'a' }, count: 'b' }, '400'],
    [{ count: '7' }, '400 validation_failed: note.text is required'],
    [[], '400 validation_failed: note.text is required'],
    ['7', '400 validation_failed: the body must be a JSON object or array'],
  ])('refuses %j: %s', async (body, expected) => {
    expect(await post('/parts', body)).toContain(expected);
  });
});
