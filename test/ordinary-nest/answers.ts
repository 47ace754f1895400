import {
  ConflictException,
  Controller,
  Header,
  HttpCode,
  Module,
  Redirect,
  Res,
  Sse,
  StreamableFile,
} from '@nestjs/common';
import type { Response } from 'express';
import { concat, of, throwError } from 'rxjs';
import { TextProperty } from '#input';
import { Public } from '#operations';
import { Handlers } from './handlers.js';
import type { Row } from './harness.js';

class Owner {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 })
  name: string;
}

@Public()
@Controller('test-answers')
class TestAnswersController {
  @Sse('events')
  events(): unknown {
    return of({ data: { a: 1 } }, { data: 'two\nlines', type: 'named', id: '7', retry: 5 }, 'text');
  }

  @Sse('events-that-fail')
  eventsThatFail(): unknown {
    return concat(
      of('first'),
      throwError(() => new ConflictException('behind the first')),
    );
  }

  @Sse('no-events-emitted')
  noEventsEmitted(): unknown {
    return throwError(() => new ConflictException('emitted'));
  }
}

const of200 = (name: string, more: Partial<Row> = {}): Row => ({
  title: name,
  path: `/v1/test-answers/${name}`,
  status: 200,
  ...more,
});

const ANSWER = new Handlers('test-answers');
const OBJECT = { a: 1, b: [null, undefined], c: undefined, d: new Date(0) };
const DATE = 'Thu, 01 Jan 2026 00:00:00 GMT';

export const ANSWERS: readonly Row[] = [
  ANSWER.get('object', () => OBJECT),
  ANSWER.get('instance', () => Object.assign(new Owner(), { password: 'secret', name: 'ann' }), {
    meant: { difference: 'members of a response', body: { name: 'ann' } },
  }),
  ANSWER.get('deleted', () => undefined, { status: 204 }, { decorators: [HttpCode(204)] }),
  ANSWER.get(
    'tagged',
    () => ({ is: 'tagged' }),
    { title: 'If-None-Match', status: 304, send: { headers: { 'if-none-match': '"other", W/"own"' } } },
    { decorators: [Header('ETag', '"own"')] },
  ),
  of200('tagged', { title: 'If-None-Match: "other"', send: { headers: { 'if-none-match': '"other"' } } }),
  ANSWER.get(
    'dated',
    () => ({ is: 'dated' }),
    { title: 'If-Modified-Since: the same', status: 304, send: { headers: { 'if-modified-since': DATE } } },
    { decorators: [Header('Last-Modified', DATE)] },
  ),
  ANSWER.get(
    'by-response',
    (response: Response) => (response.status(203).type('application/problem+json').set('ETag', '"own"'), {}),
    { status: 203 },
    { parameters: [[Res({ passthrough: true }), Object]] },
  ),
  ANSWER.get('moved', () => undefined, { status: 301 }, { decorators: [Redirect('/v1/test-answers/object', 301)] }),
  of200('events', { contains: 'event: named\nid: 7\nretry: 5\ndata: two\ndata: lines\n\n' }),
  of200('events-that-fail', { contains: 'event: error' }),
  of200('no-events-emitted', { status: 409, contains: 'emitted' }),
  ANSWER.get(
    'attachment',
    () => new StreamableFile(Buffer.from('a,b'), { type: 'text/csv', disposition: 'attachment; filename="a.csv"' }),
  ),
];

@Module({ controllers: [TestAnswersController, ANSWER.controller] })
export class AnswersModule {}
