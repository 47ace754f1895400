import {
  BadRequestException,
  ConflictException,
  Header,
  HttpException,
  Module,
  NotFoundException,
  Res,
  ServiceUnavailableException,
  UnauthorizedException,
} from '@nestjs/common';
import type { Response } from 'express';
import createError from 'http-errors';
import { Handlers } from './handlers.js';
import type { Row } from './harness.js';

const DOWN = { cache: { status: 'down', message: 'no response' } };

/** More than fits into the buffers of a connection. */
const MANY = 'm'.repeat(8_000_000);

const THROWING = new Handlers('test-errors');

/** A row of a handler that throws. */
const thrown = (name: string, status: number, make: () => unknown, decorator?: MethodDecorator): Row => {
  const answer = (): never => {
    throw make();
  };
  const more = { title: `thrown: ${name}`, status, send: { expects500: true } };
  return THROWING.get(encodeURIComponent(name), answer, more, decorator);
};

export const ERRORS: readonly Row[] = [
  thrown('object with a message', 409, () => new ConflictException({ message: 'There are two.', ids: [1, 2] })),
  thrown('several messages', 400, () => new BadRequestException(['one fault', 'another fault'])),
  thrown('message that is no text', 400, () => new BadRequestException({ message: { name: ['too short'] } })),
  thrown('error code', 404, () => new NotFoundException('No visit.', { errorCode: 'VISIT_GONE' })),
  thrown(
    'down, as Terminus',
    503,
    () => new ServiceUnavailableException({ status: 'error', info: {}, error: DOWN, details: DOWN }),
  ),
  thrown('error of http-errors', 409, () => createError(409, 'There are two.')),
  thrown('error as the response', 502, () => new HttpException(new TypeError('hidden-words') as never, 502)),
  thrown('missing credentials', 401, () => new UnauthorizedException('No entry.')),
  thrown('URIError of a handler', 500, () => new URIError('hidden-words')),
  thrown('URIError as the cause', 404, () => new NotFoundException('No tag.', { cause: new URIError() })),
  thrown('redirection', 302, () => new HttpException('Elsewhere.', 302)),
  thrown('a time', 503, () => new ServiceUnavailableException(), Header('Retry-After', '30')),
  thrown('a challenge', 401, () => new UnauthorizedException(), Header('WWW-Authenticate', 'Negotiate')),
  // As @nestjs/throttler.
  THROWING.get(
    'throttled',
    (response: Response) => {
      response.setHeader('Retry-After', 60);
      throw new HttpException('ThrottlerException: Too Many Requests', 429);
    },
    { status: 429 },
    { parameters: [[Res({ passthrough: true }), Object]] },
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
];

@Module({ controllers: [THROWING.controller] })
export class ErrorsModule {}
