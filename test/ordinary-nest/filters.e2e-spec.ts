import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  type ExceptionFilter,
  HttpException,
  HttpStatus,
  type INestApplication,
  Module,
  Post,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { RequireScopes } from '../../src/platform/auth/require-scopes.decorator.js';
import { TextProperty } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpCall } from '../support/http-client.js';

/* The filters of docs.nestjs.com/exception-filters understand the errors of the service, however they are bound. */

@Catch(HttpException)
class HttpExceptionFilter implements ExceptionFilter {
  catch(exception: HttpException, host: ArgumentsHost): void {
    const ctx = host.switchToHttp();
    const response = ctx.getResponse<Response>();
    const status = exception.getStatus();
    response.status(status).json({ statusCode: status, path: ctx.getRequest<Request>().url });
  }
}

@Catch()
class CatchEverythingFilter implements ExceptionFilter {
  constructor(private readonly httpAdapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const { httpAdapter } = this.httpAdapterHost;
    const ctx = host.switchToHttp();
    const httpStatus = exception instanceof HttpException ? exception.getStatus() : HttpStatus.INTERNAL_SERVER_ERROR;
    const path = httpAdapter.getRequestUrl(ctx.getRequest()) as string;
    httpAdapter.reply(ctx.getResponse(), { statusCode: httpStatus, path }, httpStatus);
  }
}

@Catch()
class AllExceptionsFilter extends BaseExceptionFilter {
  override catch(exception: unknown, host: ArgumentsHost): void {
    super.catch(exception, host);
  }
}

class Note {
  @TextProperty({ minLength: 1, maxLength: 10, description: 'The text.' })
  text!: string;
}

@Controller('test-filtered')
@RequireScopes('pets:write')
class TestFilteredController {
  @Post('HttpExceptionFilter')
  @UseFilters(HttpExceptionFilter)
  catchHttp(@Body() note: Note): Note {
    return note;
  }

  @Post('CatchEverythingFilter')
  @UseFilters(CatchEverythingFilter)
  catchEverything(@Body() note: Note): Note {
    return note;
  }

  @Post('AllExceptionsFilter')
  @UseFilters(AllExceptionsFilter)
  catchAll(@Body() note: Note): Note {
    return note;
  }
}

/** Which fields each filter leaves: those that every answer of the status has, and, with the Error body, those of the error. */
type Expected = [method: string, path: string, call: HttpCall, status: number, code: string, fields: object];

let app: TestApp;
afterEach(() => app.close());

async function expectAnswers(filter: Type, expected: readonly Expected[]): Promise<void> {
  for (const [method, path, call, status, code, fields] of expected) {
    const answer = await app.client.send(method, path, call);
    if (filter === AllExceptionsFilter) {
      expect(answer.json).toEqual({ code, message: expect.any(String) as string, status });
      expect(answer.headers).toMatchObject(fields);
    } else {
      expect(JSON.parse(answer.text)).toEqual({ statusCode: status, path });
    }
    expect([path, answer.status, 'www-authenticate' in answer.headers]).toEqual([path, status, status === 401]);
  }
  expect(app.log.lines.filter(({ level }) => level >= 50)).toEqual([]);
}

const UNKNOWN_KEY = { apiKey: `pets_${'a'.repeat(49)}` };
const CHALLENGE = expect.stringContaining('error="invalid_token"') as string;
const OF_ALL: readonly Expected[] = [
  ['GET', '/v1/pets', { apiKey: null }, 401, 'missing_api_key', { 'www-authenticate': 'Bearer realm="petstore"' }],
  ['GET', '/v1/pets', UNKNOWN_KEY, 401, 'invalid_api_key', { 'www-authenticate': CHALLENGE }],
  ['GET', '/v1/pets?limit=0', {}, 400, 'invalid_parameter', {}],
  ['GET', '/v1/pets/99', {}, 404, 'pet_not_found', { deprecation: expect.any(String) as string }],
  ['GET', '/v1/nope', {}, 404, 'route_not_found', {}],
  ['GET', '/v1/pets/%zz', {}, 404, 'route_not_found', {}],
  ['DELETE', '/v1/pets', {}, 405, 'method_not_allowed', { allow: 'GET, HEAD, OPTIONS, POST' }],
];
const STOCK = [[HttpExceptionFilter], [CatchEverythingFilter], [AllExceptionsFilter]] as const;

describe.each(STOCK)('%p', (filter) => {
  test('as APP_FILTER', async () => {
    @Module({ providers: [{ provide: APP_FILTER, useClass: filter }] })
    class FilterModule {}
    app = await createTestApp({ features: [FilterModule] });
    await expectAnswers(filter, OF_ALL);
  });

  test('by useGlobalFilters in setUp', async () => {
    const setUp = (nest: INestApplication): void => {
      const host = nest.get(HttpAdapterHost);
      nest.useGlobalFilters(new filter((filter === AllExceptionsFilter ? host.httpAdapter : host) as never));
    };
    app = await createTestApp({ setUp });
    await expectAnswers(filter, OF_ALL);
  });
});

test('by @UseFilters', async () => {
  @Module({ controllers: [TestFilteredController] })
  class FilteredModule {}
  app = await createTestApp({ features: [FilteredModule] });
  for (const [filter] of STOCK) {
    const path = `/v1/test-filtered/${filter.name}`;
    const asText = { body: '{}', headers: { 'content-type': 'text/plain' } };
    await expectAnswers(filter, [
      ['POST', path, { apiKey: null }, 401, 'missing_api_key', { 'www-authenticate': 'Bearer realm="petstore"' }],
      ['POST', path, {}, 400, 'missing_body', {}],
      ['POST', path, { body: '{' }, 400, 'malformed_json', {}],
      ['POST', path, { body: { text: '' } }, 400, 'validation_failed', {}],
      ['POST', path, asText, 415, 'unsupported_media_type', { accept: 'application/json' }],
    ]);
  }
});
