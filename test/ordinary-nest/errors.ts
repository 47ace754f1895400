import {
  BadRequestException,
  ConflictException,
  Controller,
  Get,
  Header,
  HttpException,
  Module,
  NotFoundException,
  Param,
  Res,
  ServiceUnavailableException,
  StreamableFile,
  UnauthorizedException,
} from '@nestjs/common';
import type { Response } from 'express';
import createError from 'http-errors';
import { Readable } from 'node:stream';
import { Public } from '#operations';
import type { Row } from './harness.js';

/** The exception that Terminus throws when an indicator is down. */
const DOWN = {
  status: 'error',
  info: {},
  error: { cache: { status: 'down', message: 'no response' } },
  details: { cache: { status: 'down', message: 'no response' } },
};

const THROWN: Record<string, [status: number, make: () => unknown]> = {
  'object with a message': [409, () => new ConflictException({ message: 'There are two.', ids: [1, 2] })],
  'several messages': [400, () => new BadRequestException(['one fault', 'another fault'])],
  'message that is no text': [400, () => new BadRequestException({ message: { name: ['too short'] } })],
  'error code': [404, () => new NotFoundException('No visit.', { errorCode: 'VISIT_GONE' })],
  'down, as Terminus': [503, () => new ServiceUnavailableException(DOWN)],
  'error of http-errors': [409, () => createError(409, 'There are two.')],
  'error as the response of an exception': [502, () => new HttpException(new TypeError('hidden-words') as never, 502)],
  'missing credentials': [401, () => new UnauthorizedException('No entry.')],
  'URIError of a handler': [500, () => new URIError('hidden-words')],
  'URIError as the cause of an exception': [404, () => new NotFoundException('No tag.', { cause: new URIError() })],
  redirection: [302, () => new HttpException('Elsewhere.', 302)],
};

/** More than fits into the buffers of a connection. */
const MANY = 'm'.repeat(8_000_000);

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

  @Get('closed')
  @Header('Retry-After', '30')
  closed(): never {
    throw new ServiceUnavailableException();
  }

  @Get('negotiated')
  @Header('WWW-Authenticate', 'Negotiate')
  negotiate(): never {
    throw new UnauthorizedException();
  }

  // As @nestjs/throttler.
  @Get('throttled')
  throttle(@Res({ passthrough: true }) response: Response): never {
    response.setHeader('Retry-After', 60);
    throw new HttpException('ThrottlerException: Too Many Requests', 429);
  }

  @Get('answered')
  answerAndThrow(@Res() response: Response): never {
    response.status(409).json({ text: MANY });
    throw new Error('hidden-words');
  }

  @Get('stream')
  streamFailing(): StreamableFile {
    return new StreamableFile(new FailingStream());
  }
}

@Module({ controllers: [TestErrorsController] })
export class ErrorsModule {}

export const ERRORS: readonly Row[] = [
  ...Object.entries(THROWN).map(([name, [status]]) => ({
    title: `thrown: ${name}`,
    path: `/v1/test-errors/thrown/${encodeURIComponent(name)}`,
    send: { expects500: true },
    status,
  })),
  { title: 'Retry-After, set before 503', path: '/v1/test-errors/closed', status: 503 },
  { title: 'WWW-Authenticate, set before 401', path: '/v1/test-errors/negotiated', status: 401 },
  { title: 'Retry-After, set before 429', path: '/v1/test-errors/throttled', status: 429 },
  { title: 'thrown after a response', path: '/v1/test-errors/answered', status: 409, isNoErrorBody: true },
  {
    title: 'a stream that fails',
    path: '/v1/test-errors/stream',
    status: 400,
    meant: { difference: 'error body', body: { code: 'bad_request', message: 'Bad Request', status: 400 } },
  },
];
