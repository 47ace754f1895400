import {
  type ArgumentMetadata,
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  ClassSerializerInterceptor,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  ParseIntPipe,
  type PipeTransform,
  type Provider,
  Scope,
} from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { Exclude, Expose } from 'class-transformer';
import type { Request, Response } from 'express';
import { map, type Observable } from 'rxjs';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { RequireScopes } from '../../src/platform/auth/require-scopes.decorator.js';
import { StartupError } from '../../src/platform/errors/startup-error.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { Pair, type Row } from './harness.js';

/* Guards, interceptors, pipes and filters that a module binds for all modules: on stock Nest, on the service, and with animals. */

class Visit {
  @Exclude()
  readonly secret = 'hidden-words';

  constructor(readonly id: number) {}

  @Expose()
  get label(): string {
    return `visit ${this.id}`;
  }
}

class OutOfHours extends Error {}

/** The client and operation that a global guard of the module has seen, by path. */
const clientsOfGuard: Record<string, unknown> = {};

@Injectable()
class RecordingGuard implements CanActivate {
  canActivate(execution: ExecutionContext): boolean {
    const request = execution.switchToHttp().getRequest<Request>();
    // Stock Nest does not have this member.
    if ('context' in request) clientsOfGuard[request.path] = [request.context.client, request.context.operation];
    return request.headers['x-refuse'] === undefined;
  }
}

@Catch(OutOfHours)
class OutOfHoursFilter implements ExceptionFilter {
  catch(error: OutOfHours, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<Response>().status(418).json({ closed: error.message });
  }
}

@Injectable()
class WrappingInterceptor implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { headers } = execution.switchToHttp().getRequest<Request>();
    return next.handle().pipe(map((data: unknown) => (headers['x-wrap'] === undefined ? data : { data })));
  }
}

@Injectable()
class UpperCasePipe implements PipeTransform {
  transform(value: unknown, { data }: ArgumentMetadata): unknown {
    return data === 'name' ? String(value).toUpperCase() : value;
  }
}

@Controller('test-bound')
@RequireScopes()
class TestBoundController {
  @Get('visit')
  visit(): Visit {
    return new Visit(7);
  }

  @Get('closed')
  closed(): never {
    throw new OutOfHours('until nine');
  }

  @Get('missing')
  missing(): never {
    throw new NotFoundException('No visit.');
  }

  @Get('piped/:name/:number')
  piped(@Param('name') name: string, @Param('number', ParseIntPipe) number: number): unknown {
    return { name, number };
  }

  @Get('public')
  @Public()
  open(): string[] {
    return ['open'];
  }
}

const BOUND: Provider[] = [
  { provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor },
  { provide: APP_INTERCEPTOR, useClass: WrappingInterceptor },
  { provide: APP_GUARD, useClass: RecordingGuard },
  { provide: APP_FILTER, useClass: OutOfHoursFilter },
  { provide: APP_PIPE, useClass: UpperCasePipe },
];

@Module({ controllers: [TestBoundController], providers: BOUND })
class BoundModule {}

let pair: Pair;
let app: TestApp;
beforeAll(async () => {
  pair = await Pair.start([BoundModule]);
  app = pair.ours;
});
afterAll(() => pair.close());

const wrap = { headers: { 'x-wrap': 'yes' } };
const refuse = { headers: { 'x-refuse': 'yes' } };
const ROWS: readonly Row[] = [
  { title: 'ClassSerializerInterceptor', path: '/v1/test-bound/visit', status: 200, contains: 'visit 7' },
  { title: 'an interceptor with map', path: '/v1/test-bound/visit', send: wrap, status: 200, contains: 'data' },
  {
    title: 'a filter of one exception',
    path: '/v1/test-bound/closed',
    status: 418,
    contains: 'until nine',
    isNoErrorBody: true,
  },
  {
    title: 'an exception for which the module has no filter',
    path: '/v1/test-bound/missing',
    status: 404,
    contains: 'No visit.',
  },
  { title: 'a guard', path: '/v1/test-bound/visit', send: refuse, status: 403 },
  { title: 'a pipe', path: '/v1/test-bound/piped/ann/7', status: 200, contains: 'ANN' },
  { title: 'a pipe of a parameter', path: '/v1/test-bound/piped/ann/x', status: 400 },
];

test.each(ROWS.map((row) => [row.title, row] as const))('bound for all modules: %s', async (_, row) => {
  await pair.compare(row);
});

test('a guard for all modules runs after authentication, and sees client and operation', async () => {
  await app.client.get('/v1/test-bound/visit');
  await app.client.get('/v1/test-bound/public', { apiKey: null });
  expect(clientsOfGuard['/v1/test-bound/visit']).toEqual(['test-client', 'visit']);
  expect(clientsOfGuard['/v1/test-bound/public']).toEqual([undefined, 'open']);
  clientsOfGuard['/v1/test-bound/visit'] = 'not asked';
  expect((await app.client.get('/v1/test-bound/visit', { apiKey: null })).status).toBe(401);
  expect(clientsOfGuard['/v1/test-bound/visit']).toBe('not asked');
});

describe('animals', () => {
  const LARGEST = 9223372036854775807n;

  test('have the same bytes with and without interceptors that change nothing', async () => {
    const bare = await createTestApp();
    try {
      for (const { client } of [bare, app]) {
        await client.post('/v1/pets', { name: 'Rex "é\u2028', categoryId: LARGEST, status: 'sold' });
        await client.post('/v1/pets', { name: 'Ada', categoryId: -1 });
      }
      for (const path of ['/v1/pets', '/v1/pets?limit=1', '/v1/pets/1', '/v1/pets/7', '/v1/pets?limit=0']) {
        const [expected, answer] = [await bare.client.get(path), await app.client.get(path)];
        expect([answer.status, answer.text, answer.headers.etag]).toEqual([
          expected.status,
          expected.text,
          expected.headers.etag,
        ]);
        if (answer.status === 200) {
          const headers = { 'if-none-match': answer.headers.etag };
          expect((await app.client.get(path, { headers })).status).toBe(304);
        }
      }
    } finally {
      await bare.close();
    }
  });

  test('reach an interceptor as values with all digits', async () => {
    const created = await app.client.post('/v1/pets', { name: 'Max', categoryId: LARGEST }, wrap);
    const { id } = (created.json as { data: { id: number } }).data;
    expect([created.status, created.json]).toEqual([
      201,
      { data: { id, name: 'Max', categoryId: LARGEST, status: 'available' } },
    ]);
    expect(created.headers.location).toContain(`/pets/${id}`);
    expect((await app.client.get('/v1/pets', wrap)).json).toEqual({
      data: expect.arrayContaining([expect.objectContaining({ id })]) as object,
    });
  });
});

test('the start fails for a request-scoped interceptor for all modules', async () => {
  @Injectable({ scope: Scope.REQUEST })
  class RequestInterceptor extends WrappingInterceptor {}
  @Module({ providers: [{ provide: APP_INTERCEPTOR, scope: Scope.REQUEST, useClass: RequestInterceptor }] })
  class RequestScopedModule {}
  await expect(createTestApp({ features: [RequestScopedModule] })).rejects.toThrow(
    'An APP_INTERCEPTOR that is made for each request cannot see the answers of all modules.',
  );
});

test.each(['enableVersioning', 'setGlobalPrefix'] as const)(
  'the start fails for a call of %s in setUp',
  async (method) => {
    const setUp = (nest: INestApplication): void => void nest[method]({} as never);
    await expect(createTestApp({ setUp })).rejects.toThrow(StartupError);
  },
);
