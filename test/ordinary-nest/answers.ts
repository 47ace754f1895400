import {
  ConflictException,
  Controller,
  Get,
  Header,
  HttpCode,
  Module,
  Post,
  Redirect,
  Res,
  Sse,
  StreamableFile,
} from '@nestjs/common';
import type { Response } from 'express';
import { concat, of, throwError } from 'rxjs';
import { TextProperty } from '#input';
import { Public } from '#operations';
import type { Row } from './harness.js';

class Owner {
  @TextProperty({ description: 'The name.', minLength: 1, maxLength: 40 })
  name: string;
}

@Public()
@Controller('test-answers')
class TestAnswersController {
  @Get('object')
  object(): unknown {
    return { a: 1, b: [null, undefined], c: undefined, d: new Date(0) };
  }

  @Get('instance')
  instance(): Owner {
    return Object.assign(new Owner(), { password: 'secret', name: 'ann' });
  }

  @Get('null')
  null(): null {
    return null;
  }

  @Get('text')
  text(): string {
    return 'text ü';
  }

  @Get('number')
  number(): number {
    return 7;
  }

  @Get('bytes')
  bytes(): Buffer {
    return Buffer.from('bytes');
  }

  @Post('deleted')
  @HttpCode(204)
  deleted(): void {}

  @Get('tagged')
  @Header('ETag', '"own"')
  tagged(): object {
    return { is: 'tagged' };
  }

  @Get('dated')
  @Header('Last-Modified', 'Thu, 01 Jan 2026 00:00:00 GMT')
  dated(): object {
    return { is: 'dated' };
  }

  @Get('by-response')
  byResponse(@Res({ passthrough: true }) response: Response): object {
    response.status(203).type('application/problem+json').set('ETag', '"own"');
    return {};
  }

  @Get('moved')
  @Redirect('/v1/test-answers/object', 301)
  moved(): void {}

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

  @Get('file')
  file(): StreamableFile {
    return new StreamableFile(Buffer.from('a,b'), { type: 'text/csv', disposition: 'attachment; filename="a.csv"' });
  }
}

@Module({ controllers: [TestAnswersController] })
export class AnswersModule {}

const of200 = (name: string, more: Partial<Row> = {}): Row => ({
  title: name,
  path: `/v1/test-answers/${name}`,
  status: 200,
  ...more,
});

export const ANSWERS: readonly Row[] = [
  of200('object'),
  of200('instance', { meant: { difference: 'members of a response', body: { name: 'ann' } } }),
  of200('null'),
  of200('text', { meant: { difference: 'media types', type: 'text/plain; charset=utf-8', body: 'text ü' } }),
  of200('number', { meant: { difference: 'media types', type: 'application/json', body: 7 } }),
  of200('bytes', { meant: { difference: 'media types', type: 'application/octet-stream', body: 'bytes' } }),
  of200('deleted', { method: 'POST', status: 204 }),
  of200('tagged', { title: 'If-None-Match', status: 304, send: { headers: { 'if-none-match': '"other", W/"own"' } } }),
  of200('tagged', { title: 'If-None-Match: "other"', send: { headers: { 'if-none-match': '"other"' } } }),
  of200('dated', {
    title: 'If-Modified-Since: the same',
    status: 304,
    send: { headers: { 'if-modified-since': 'Thu, 01 Jan 2026 00:00:00 GMT' } },
  }),
  of200('by-response', { status: 203 }),
  of200('moved', { status: 301 }),
  of200('events', { contains: 'event: named\nid: 7\nretry: 5\ndata: two\ndata: lines\n\n' }),
  of200('events-that-fail', { contains: 'event: error' }),
  of200('no-events-emitted', { status: 409, contains: 'emitted' }),
  of200('file'),
];
