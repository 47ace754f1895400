import {
  BadRequestException,
  ConflictException,
  Header,
  HttpException,
  Module,
  NotFoundException,
  Res,
  ServiceUnavailableException,
  StreamableFile,
  UnauthorizedException,
} from '@nestjs/common';
import type { Response } from 'express';
import createError from 'http-errors';
import { Readable } from 'node:stream';
import { Handlers, type Parameter } from './handlers.js';
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

const THROWING = new Handlers('test-errors');
const throws = (make: () => unknown) => (): never => {
  throw make();
};
const PASSED: Parameter[] = [[Res({ passthrough: true }), Object]];

export const ERRORS: readonly Row[] = [
  ...Object.entries(THROWN).map(([name, [status, make]]) =>
    THROWING.get(encodeURIComponent(name), throws(make), {
      title: `thrown: ${name}`,
      status,
      send: { expects500: true },
    }),
  ),
  THROWING.get(
    'closed',
    throws(() => new ServiceUnavailableException()),
    { status: 503 },
    { decorators: [Header('Retry-After', '30')] },
  ),
  THROWING.get(
    'negotiated',
    throws(() => new UnauthorizedException()),
    { status: 401 },
    { decorators: [Header('WWW-Authenticate', 'Negotiate')] },
  ),
  // As @nestjs/throttler.
  THROWING.get(
    'throttled',
    (response: Response) => {
      response.setHeader('Retry-After', 60);
      throw new HttpException('ThrottlerException: Too Many Requests', 429);
    },
    { status: 429 },
    { parameters: PASSED },
  ),
  THROWING.get(
    'thrown-after-a-response',
    (response: Response) => {
      response.status(409).json({ text: MANY });
      throw new Error('hidden-words');
    },
    { status: 409, isNoErrorBody: true },
    { parameters: [[Res(), Object]] },
  ),
  THROWING.get('stream-that-fails', () => new StreamableFile(new FailingStream()), {
    status: 400,
    meant: { difference: 'error body', body: { code: 'bad_request', message: 'Bad Request', status: 400 } },
  }),
];

@Module({ controllers: [THROWING.controller] })
export class ErrorsModule {}
