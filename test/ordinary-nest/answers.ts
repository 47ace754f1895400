import { ConflictException, Header, HttpCode, Module, Redirect, Res, StreamableFile } from '@nestjs/common';
import type { Response } from 'express';
import { concat, of, throwError } from 'rxjs';
import { TextProperty } from '#input';
import { Handlers } from './handlers.js';
import type { Row } from './harness.js';

class Owner {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 })
  name: string;
}

const ANSWER = new Handlers('test-answers');
const OBJECT = { a: 1, b: [null, undefined], c: undefined, d: new Date(0) };
const conflict = (): Error => new ConflictException('not emitted');
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
  ANSWER.row('tagged', { title: 'If-None-Match: "other"', send: { headers: { 'if-none-match': '"other"' } } }),
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
  ANSWER.sse('events', () => of({ data: { a: 1 } }, { data: 'two\nlines', type: 'named', id: '7', retry: 5 }, 'text'), {
    contains: 'event: named\nid: 7\nretry: 5\ndata: two\ndata: lines\n\n',
  }),
  ANSWER.sse('events-that-fail', () => concat(of('first'), throwError(conflict)), { contains: 'event: error' }),
  ANSWER.sse('no-events-emitted', () => throwError(conflict), { status: 409, contains: 'emitted' }),
  ANSWER.get(
    'attachment',
    () => new StreamableFile(Buffer.from('a,b'), { type: 'text/csv', disposition: 'attachment; filename="a.csv"' }),
  ),
];

@Module({ controllers: [ANSWER.controller] })
export class AnswersModule {}
