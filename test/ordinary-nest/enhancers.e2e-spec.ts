import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  ClassSerializerInterceptor,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  ParseIntPipe,
  type PipeTransform,
  type Provider,
  Scope,
  UseInterceptors,
} from '@nestjs/common';
import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE, Reflector } from '@nestjs/core';
import type { ExpressAdapter } from '@nestjs/platform-express';
import { Exclude, Expose } from 'class-transformer';
import type { Request, Response } from 'express';
import { map, of, tap, timeout } from 'rxjs';
import { RequireScopes } from '#operations';
import { PetsController } from '../../src/pets/pets.controller.js';
import { createTestApp, type TestApp } from '../support/app.js';
import { Handlers } from './handlers.js';
import { Pair, type Row } from './harness.js';

/* Guards, interceptors, pipes and filters that a module binds for all modules: on stock Nest, on the service, and with pets. */

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

const recording: CanActivate = {
  canActivate: (execution) => {
    const request = execution.switchToHttp().getRequest<Request>();
    // Stock Nest does not have this member.
    if ('context' in request) clientsOfGuard[request.path] = [request.context.client, request.context.operation];
    return request.headers['x-refuse'] === undefined;
  },
};

@Catch(OutOfHours)
class OutOfHoursFilter implements ExceptionFilter {
  catch(error: OutOfHours, host: ArgumentsHost): void {
    host.switchToHttp().getResponse<Response>().status(418).json({ closed: error.message });
  }
}

const wrapping: NestInterceptor = {
  intercept: (execution, next) => {
    const { headers } = execution.switchToHttp().getRequest<Request>();
    return next.handle().pipe(map((data: unknown) => (headers['x-wrap'] === undefined ? data : { data })));
  },
};

const upperCase: PipeTransform = {
  transform: (value: unknown, { data }) => (data === 'name' ? String(value).toUpperCase() : value),
};

const HANDLERS = new Handlers('test-bound');
const fails = (error: Error) => () => {
  throw error;
};
HANDLERS.add(Get('public'), 'open', () => ['open']);

const ROWS: readonly Row[] = [
  HANDLERS.get('visit', () => new Visit(7), { title: 'a serializer', contains: 'visit 7' }, RequireScopes()),
  HANDLERS.row('visit', { title: 'an interceptor with map', send: { headers: { 'x-wrap': 'yes' } }, contains: 'data' }),
  HANDLERS.row('visit', { title: 'a guard', send: { headers: { 'x-refuse': 'yes' } }, status: 403 }),
  HANDLERS.get('closed', fails(new OutOfHours('until nine')), {
    title: 'a filter of one exception',
    status: 418,
    contains: 'until nine',
    isNoErrorBody: true,
  }),
  HANDLERS.get('missing', fails(new NotFoundException('No visit.')), {
    title: 'an exception for which the module has no filter',
    status: 404,
    contains: 'No visit.',
  }),
  HANDLERS.get(
    'piped/:name/:number',
    (name: string, number: number) => ({ name, number }),
    { title: 'a pipe', path: '/v1/test-bound/piped/ann/7', contains: 'ANN' },
    {
      parameters: [
        [Param('name'), String],
        [Param('number', ParseIntPipe), Number],
      ],
    },
  ),
  HANDLERS.row('piped/ann/x', { title: 'a pipe of a parameter', status: 400 }),
];

const BOUND: Provider[] = [
  { provide: APP_INTERCEPTOR, useClass: ClassSerializerInterceptor },
  { provide: APP_INTERCEPTOR, useValue: wrapping },
  { provide: APP_GUARD, useValue: recording },
  { provide: APP_FILTER, useClass: OutOfHoursFilter },
  { provide: APP_PIPE, useValue: upperCase },
];

@Module({ controllers: [HANDLERS.controller], providers: BOUND })
class BoundModule {}

let pair: Pair;
let app: TestApp;
beforeAll(async () => {
  pair = await Pair.start([BoundModule]);
  app = pair.ours;
});
afterAll(() => pair.close());

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

describe('pets', () => {
  const LARGEST = 9223372036854775807n;

  const cached = new Map<string, unknown>();
  const audited: string[] = [];
  const caching = (write: (value: unknown) => unknown, read: (kept: unknown) => unknown): NestInterceptor => ({
    intercept: (execution, next) => {
      const { method, url } = execution.switchToHttp().getRequest<Request>();
      if (method === 'GET' && cached.has(url)) return of(read(cached.get(url)));
      return next.handle().pipe(tap((value) => cached.set(url, write(value))));
    },
  });
  /** Interceptors as Nest's documentation has them, by the value of `X-Interceptor`. */
  const KINDS: Record<string, NestInterceptor> = {
    serializer: new ClassSerializerInterceptor(new Reflector()),
    cache: caching(
      (value) => value,
      (kept) => kept,
    ),
    // A store such as Redis keeps JSON.
    store: caching(JSON.stringify, (kept) => JSON.parse(kept as string) as unknown),
    timeout: { intercept: (_, next) => next.handle().pipe(timeout(60_000)) },
    audit: { intercept: (_, next) => next.handle().pipe(tap((value) => audited.push(JSON.stringify(value)))) },
    mapping: { intercept: (_, next) => next.handle().pipe(map((data: unknown) => ({ data }))) },
    adding: { intercept: (_, next) => next.handle().pipe(map((data: object) => ({ ...data, total: 2 }))) },
  };
  /** What a client gets in place of a text. */
  const CHANGED: Record<string, (text: string) => string> = {
    mapping: (text) => `{"data":${text}}`,
    adding: (text) => `${text.slice(0, -1)},"total":2}`,
  };

  class ChosenInterceptor implements NestInterceptor {
    intercept(execution: ExecutionContext, next: CallHandler) {
      const { headers } = execution.switchToHttp().getRequest<Request>();
      return KINDS[String(headers['x-interceptor'])]?.intercept(execution, next) ?? next.handle();
    }
  }
  @Module({ providers: [{ provide: APP_INTERCEPTOR, useClass: ChosenInterceptor }] })
  class GlobalModule {}
  @Module({ providers: [{ provide: APP_INTERCEPTOR, scope: Scope.REQUEST, useClass: ChosenInterceptor }] })
  class RequestScopedModule {}

  test.each<[string, Parameters<typeof createTestApp>[0]]>([
    ['APP_INTERCEPTOR', { features: [GlobalModule] }],
    ['APP_INTERCEPTOR made for each request', { features: [RequestScopedModule] }],
    ['useGlobalInterceptors', { setUp: (nest) => void nest.useGlobalInterceptors(new ChosenInterceptor()) }],
    ['@UseInterceptors', {}],
  ])('reach interceptors as values, and keep all digits: %s', async (way, options) => {
    if (way === '@UseInterceptors') UseInterceptors(ChosenInterceptor)(PetsController);
    cached.clear();
    const bound = await createTestApp(options);
    const { client } = bound;
    try {
      const pet = { name: 'Max', categoryId: LARGEST };
      await client.post('/v1/pets', pet);
      const { headers } = await client.post('/v1/pets', pet);
      const { pathname } = new URL(String(headers.location));
      for (const kind of Object.keys(KINDS)) {
        const chosen = { headers: { 'x-interceptor': kind } };
        const sent = CHANGED[kind] ?? ((text: string) => text);
        // Twice: the second response is from the cache.
        for (const path of ['/v1/pets?limit=1', '/v1/pets', pathname].flatMap((each) => [each, each])) {
          const [plain, answer] = [await client.get(path), await client.get(path, chosen)];
          const { nextCursor } = /cursor=(?<nextCursor>[^>]+)/.exec(String(plain.headers.link))?.groups ?? {};
          expect([path, nextCursor !== undefined]).toEqual([path, path === '/v1/pets?limit=1']);
          if (kind in CHANGED && path !== pathname) {
            // The page as the handler has returned it: its address is the module's to give.
            const cursor = nextCursor === undefined ? '' : `,"nextCursor":"${nextCursor}"`;
            expect([answer.status, answer.text]).toEqual([200, sent(`{"items":${plain.text}${cursor}}`)]);
            continue;
          }
          // JSON.stringify takes no bigint, so the store has the text of its digits.
          const text = kind === 'store' ? answer.text.replaceAll(`"${LARGEST}"`, String(LARGEST)) : answer.text;
          expect([way, kind, answer.status, text]).toEqual([way, kind, 200, sent(plain.text)]);
          if (text === plain.text && kind !== 'store') expect(answer.headers.etag).toBe(plain.headers.etag);
          if (nextCursor !== undefined) expect(answer.headers.link).toBe(plain.headers.link);
        }
        const created = await client.post('/v1/pets', pet, chosen);
        const found = await client.get(new URL(String(created.headers.location)).pathname);
        expect([created.status, created.text]).toEqual([201, sent(found.text)]);
        cached.clear();
      }
    } finally {
      if (way === '@UseInterceptors') Reflect.deleteMetadata(INTERCEPTORS_METADATA, PetsController);
      await bound.close();
    }
  });
});

// The last test, because nothing takes the hooks off again.
test('the hooks of the adapter are called for every request from their setting on, before the API key is checked', async () => {
  const adapter = app.nest.getHttpAdapter() as ExpressAdapter;
  const called: string[] = [];
  adapter.setOnRequestHook((request: Request, response: Response, done: () => void) => {
    called.push(`request ${request.path}`);
    response.setHeader('X-Hook', 'called');
    done();
  });
  adapter.setOnResponseHook((request: Request, response: Response) => {
    called.push(`response ${request.path} ${response.statusCode}`);
  });
  for (const [path, status] of [
    ['/v1/pets', 401],
    ['/health/live', 200],
    ['/nowhere', 404],
  ] as const) {
    const answer = await app.client.get(path, { apiKey: null });
    expect([answer.status, answer.headers['x-hook']]).toEqual([status, 'called']);
    expect(called.splice(0)).toEqual([`request ${path}`, `response ${path} ${status}`]);
  }
});
