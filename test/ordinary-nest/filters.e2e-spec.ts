import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  ConflictException,
  type ExceptionFilter,
  Get,
  HttpException,
  HttpStatus,
  type INestApplication,
  Module,
  Param,
  Post,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { TextProperty } from '#input';
import { Public, RequireScopes } from '#operations';
import { createTestApp, type TestAppOptions } from '../support/app.js';
import type { HttpCall } from '../support/http-client.js';

/* The filters of docs.nestjs.com/exception-filters understand the errors of the service, however they are bound. */

@Catch(HttpException)
class HttpExceptionFilter implements ExceptionFilter {
  catch(exception: HttpException, host: ArgumentsHost): void {
    const ctx = host.switchToHttp();
    const status = exception.getStatus();
    ctx.getResponse<Response>().status(status).json({ statusCode: status, path: ctx.getRequest<Request>().url });
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
  @TextProperty({ minLength: 1, maxLength: 10, description: 'The text.' }) text!: string;
}

const THROWN: Record<string, Error> = {
  conflict: new ConflictException({ message: 'Two.', ids: [1] }),
  unknown: new Error('hidden-words'),
};

@Controller('test-filtered')
@RequireScopes('pets:write')
class TestFilteredController {
  @Post()
  create(@Body() note: Note): Note {
    return note;
  }

  @Get('thrown/:name')
  @Public()
  throw(@Param('name') name: string): never {
    throw THROWN[name] as Error;
  }
}

type Failure = [string, string, call: HttpCall, status: number, code: string, fields: object, more?: object];

const CHALLENGE = { 'www-authenticate': 'Bearer realm="petstore"' };
const ANYWHERE: readonly Failure[] = [
  ['GET', '/v1/pets', { apiKey: null }, 401, 'missing_api_key', CHALLENGE],
  ['GET', '/v1/pets?limit=0', {}, 400, 'invalid_parameter', {}],
  ['GET', '/v1/pets/99', {}, 404, 'pet_not_found', { deprecation: '@1795132800' }],
  ['GET', '/v1/nope', {}, 404, 'route_not_found', {}],
  ['GET', '/v1/pets/%zz', {}, 404, 'route_not_found', {}],
  ['DELETE', '/v1/pets', {}, 405, 'method_not_allowed', { allow: 'GET, HEAD, OPTIONS, POST' }],
];
const AS_TEXT = { body: '{}', headers: { 'content-type': 'text/plain' } };
const OF_HANDLER: readonly Failure[] = [
  ['POST', '/v1/test-filtered', { apiKey: null }, 401, 'missing_api_key', CHALLENGE],
  ['POST', '/v1/test-filtered', {}, 400, 'missing_body', {}],
  ['POST', '/v1/test-filtered', { body: '{' }, 400, 'malformed_json', {}],
  ['POST', '/v1/test-filtered', { body: { text: '' } }, 400, 'validation_failed', {}],
  ['POST', '/v1/test-filtered', AS_TEXT, 415, 'unsupported_media_type', { accept: 'application/json' }],
];

const OF_SERVICE: readonly Failure[] = [
  ['GET', '/v1/test-filtered/thrown/conflict', {}, 409, 'conflict', {}, { message: 'Two.', details: { ids: [1] } }],
  ['GET', '/v1/test-filtered/thrown/unknown', { expects500: true }, 500, 'internal_error', {}],
];

@Module({ controllers: [TestFilteredController] })
class ThrowingModule {}

/** The ways to bind a filter: what a team adds to the application, and the requests whose errors the filter gets. */
const BINDINGS: Record<string, (filter: Type) => [additions: TestAppOptions, requests: readonly Failure[]]> = {
  APP_FILTER: (filter) => {
    @Module({ providers: [{ provide: APP_FILTER, useClass: filter }] })
    class FilterModule {}
    return [{ features: [FilterModule, ThrowingModule] }, ANYWHERE];
  },
  useGlobalFilters: (filter) => {
    const setUp = (nest: INestApplication): void => {
      const host = nest.get(HttpAdapterHost);
      nest.useGlobalFilters(new filter(filter === AllExceptionsFilter ? host.httpAdapter : host) as ExceptionFilter);
    };
    return [{ setUp, features: [ThrowingModule] }, ANYWHERE];
  },
  '@UseFilters': (filter) => {
    @Controller('test-filtered')
    @UseFilters(filter)
    class OwnFilteredController extends TestFilteredController {}
    @Module({ controllers: [OwnFilteredController] })
    class FilteredModule {}
    return [{ features: [FilteredModule] }, OF_HANDLER];
  },
};

describe.each([[HttpExceptionFilter], [CatchEverythingFilter], [AllExceptionsFilter]])('%p', (filter) => {
  test.each(Object.entries(BINDINGS))('bound by %s', async (_, bind) => {
    const [additions, requests] = bind(filter);
    const app = await createTestApp(additions);
    // The first two filters write bodies of their own; the third one leaves the response to the service by `super.catch`.
    const isOwn = filter !== AllExceptionsFilter;
    for (const [method, path, call, status, code, fields, more] of [...requests, ...(isOwn ? [] : OF_SERVICE)]) {
      const answer = await app.client.send(method, path, call);
      const body = isOwn
        ? { statusCode: status, path }
        : { code, message: expect.any(String) as string, status, ...more };
      expect([path, answer.status, JSON.parse(answer.text)]).toEqual([path, status, body]);
      expect(answer.headers).toMatchObject(isOwn && status !== 401 ? {} : fields);
    }
    expect(app.log.lines.filter(({ level }) => level >= 50)).toHaveLength(isOwn ? 0 : 1);
    await app.close();
  });
});
