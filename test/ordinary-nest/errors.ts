import {
  ConflictException,
  Controller,
  Get,
  HttpException,
  Module,
  NotFoundException,
  Param,
  ServiceUnavailableException,
  StreamableFile,
} from '@nestjs/common';
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

const THROWN: Record<string, [status: number, make: () => unknown]> = {
  'object with a message': [409, () => new ConflictException({ message: 'There are two.', ids: [1, 2] })],
  'error code': [404, () => new NotFoundException('No visit.', { errorCode: 'VISIT_GONE' })],
  'down, as Terminus': [503, () => new ServiceUnavailableException(DOWN)],
  'error of http-errors': [409, () => createError(409, 'There are two.')],
  'error as the response of an exception': [502, () => new HttpException(new TypeError('hidden-words') as never, 502)],
  redirection: [302, () => new HttpException('Elsewhere.', 302)],
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
    throw THROWN[name]?.[1]();
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

const failed = (code: string, status: number): object => ({
  code,
  message: expect.not.stringContaining('hidden') as string,
  status,
});

export const ERRORS: readonly Row[] = [
  ...Object.entries(THROWN).map(([name, [status]]) => ({
    title: `thrown: ${name}`,
    path: `/v1/test-errors/thrown/${encodeURIComponent(name)}`,
    status,
  })),
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
