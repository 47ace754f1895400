import {
  BadRequestException,
  ConflictException,
  Controller,
  Get,
  HttpException,
  ImATeapotException,
  InternalServerErrorException,
  Module,
  NotFoundException,
  Param,
  Res,
  ServiceUnavailableException,
  StreamableFile,
} from '@nestjs/common';
import type { Response } from 'express';
import createError from 'http-errors';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { Public } from '../../src/platform/auth/public.decorator.js';
import type { Row } from './harness.js';

const MISSING_FILE = '/nonexistent-directory/hidden-name';

/** The exception that Terminus throws when an indicator is down. */
const DOWN = {
  status: 'error',
  info: {},
  error: { cache: { status: 'down', message: 'no answer' } },
  details: { cache: { status: 'down', message: 'no answer' } },
};

const THROWN: Record<string, () => unknown> = {
  text: () => new BadRequestException('The date is in the past.'),
  array: () => new BadRequestException(['one fault', 'another fault']),
  object: () => new HttpException({ reason: 'late', fields: ['date', 7] }, 409),
  'object with a message': () => new ConflictException({ message: 'There are two.', ids: [1, 2] }),
  description: () => new BadRequestException('No.', { description: 'What it is' }),
  'error code': () => new NotFoundException('No visit.', { errorCode: 'VISIT_GONE' }),
  teapot: () => new ImATeapotException(),
  'custom status': () => new HttpException('Custom.', 499),
  'down, as Terminus': () => new ServiceUnavailableException(DOWN),
  'internal with details': () => new InternalServerErrorException({ trace: 'shown on purpose' }),
  'error of http-errors': () => createError(409, 'There are two.'),
  '5xx of http-errors': () => createError(502, 'hidden-words'),
  'plain object': () => ({ statusCode: 404, message: 'Nothing there.' }),
  'a string': () => 'thrown',
  bug: () => new TypeError('hidden-words'),
};

class FailingStream extends Readable {
  override _read(): void {
    this.destroy(new Error('hidden-words'));
  }
}

@Public()
@Controller('test-errors')
class TestErrorsController {
  @Get('thrown/:name')
  throwError(@Param('name') name: string): never {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- some are not errors, on purpose
    throw THROWN[name]?.() ?? new HttpException(`Status ${name}.`, Number(name));
  }

  @Get('wrapped')
  wrapError(): never {
    throw new HttpException(new TypeError('hidden-words') as never, 502);
  }

  @Get('sent-file')
  sendMissingFile(@Res() response: Response): void {
    response.sendFile(MISSING_FILE);
  }

  @Get('stream/missing')
  streamMissingFile(): StreamableFile {
    return new StreamableFile(createReadStream(MISSING_FILE), {
      type: 'image/png',
      disposition: 'attachment; filename="a.png"',
      length: 70,
    });
  }

  @Get('stream/failing')
  streamFailing(): StreamableFile {
    return new StreamableFile(new FailingStream());
  }

  @Get('stream/handled')
  streamHandled(): StreamableFile {
    return new StreamableFile(new FailingStream()).setErrorHandler((_, response) => {
      response.statusCode = 418;
      response.send('handled');
    });
  }
}

@Module({ controllers: [TestErrorsController] })
export class ErrorsModule {}

const STATUSES: Record<string, number> = {
  text: 400,
  array: 400,
  object: 409,
  'object with a message': 409,
  description: 400,
  'error code': 404,
  teapot: 418,
  'custom status': 499,
  'down, as Terminus': 503,
  'internal with details': 500,
  'error of http-errors': 409,
  '5xx of http-errors': 502,
  'plain object': 404,
  'a string': 500,
  bug: 500,
  501: 501,
  502: 502,
  503: 503,
  504: 504,
  302: 302,
  203: 203,
};

const failed = (code: string, status: number): object => ({
  code,
  message: expect.not.stringContaining('hidden') as string,
  status,
});

export const ERRORS: readonly Row[] = [
  ...Object.entries(STATUSES).map(([name, status]) => ({
    title: `thrown: ${name}`,
    path: `/v1/test-errors/thrown/${encodeURIComponent(name)}`,
    status,
  })),
  { title: 'an error as the response of an exception', path: '/v1/test-errors/wrapped', status: 502 },
  { title: 'sendFile of a missing file', path: '/v1/test-errors/sent-file', status: 404 },
  {
    title: 'a stream of a missing file',
    path: '/v1/test-errors/stream/missing',
    status: 400,
    meant: { difference: 'stream that fails', status: 404, body: failed('not_found', 404) },
  },
  {
    title: 'a stream that fails before its first byte',
    path: '/v1/test-errors/stream/failing',
    status: 400,
    meant: { difference: 'stream that fails', status: 500, body: failed('internal_error', 500) },
  },
  {
    title: "a stream's own handler of errors",
    path: '/v1/test-errors/stream/handled',
    status: 418,
    // Express writes this answer, not the service.
    isNoErrorBody: true,
  },
];
