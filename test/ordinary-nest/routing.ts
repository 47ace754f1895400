import {
  All,
  Controller,
  Get,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Param,
  Post,
  Req,
  RequestMethod,
  Version,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import type { Request } from 'express';
import { Public } from '#operations';
import { Handlers, type Parameter } from './handlers.js';
import type { Row } from './harness.js';

const ROUTES = new Handlers('test-routing');
const REQUEST: Parameter[] = [[Req(), Object]];
ROUTES.add(All('any'), 'answerAll', ({ method }: Request) => ({ method }), { parameters: REQUEST });
ROUTES.get('seen', ({ seen }: Request & { seen?: string[] }) => ({ seen }), {}, { parameters: REQUEST });
ROUTES.get('first', () => ({ is: 'first' }));
ROUTES.add(All('first'), 'findOthers', ({ method }: Request) => ({ is: 'another', method }), { parameters: REQUEST });
ROUTES.get('optional{/:id}', (params: unknown) => ({ params }), {}, { parameters: [[Param(), Object]] });
ROUTES.get('versioned', () => ({ version: 2 }), {}, { decorators: [Version('2')] });
ROUTES.get('replaced', () => ({ version: 1 }));
ROUTES.add(Get('replaced'), 'findReplacement', () => ({ version: '2 or 3' }), { decorators: [Version(['2', '3'])] });

@Public()
@Controller(['test-routing-orders', 'test-routing-purchases'])
class TestOrdersController {
  @Post()
  create(): object {
    return { order: 1 };
  }
}

@Public()
@Controller({ path: 'test-routing-items', version: ['1', '2'] })
class TestItemsController {
  @Post()
  create(): object {
    return { item: 1 };
  }
}

@Public()
@Controller({ path: 'test-routing-neutral', version: VERSION_NEUTRAL })
class TestNeutralController {
  @Get()
  findAll(): string[] {
    return ['neutral'];
  }
}

@Module({ controllers: [ROUTES.controller, TestOrdersController, TestItemsController, TestNeutralController] })
export class RoutingModule implements NestModule {
  /** In the forms in which modules for logs, sessions and audits register theirs. */
  configure(consumer: MiddlewareConsumer): void {
    for (const route of [
      { path: '{*splat}', method: RequestMethod.ALL },
      { path: '{*splat}', method: RequestMethod.GET },
      '{*splat}',
      ROUTES.controller,
    ]) {
      consumer
        .apply((request: Request & { seen?: string[] }, _response: unknown, next: () => void) => {
          (request.seen ??= []).push(typeof route === 'object' ? String(route.method) : 'any');
          next();
        })
        .forRoutes(route);
    }
  }
}

const ok = (method: string, path: string, more: Partial<Row> = {}): Row => ({
  title: `${method} ${path}`,
  method,
  path,
  status: 200,
  ...more,
});

const missing = (path: string): Row => ({
  title: `no route: ${path}`,
  path,
  status: 404,
  meant: { difference: 'unknown routes', body: expect.objectContaining({ code: 'route_not_found' }) as object },
});

export const ROUTING: readonly Row[] = [
  ...['POST', 'OPTIONS', 'PROPFIND'].map((method) => ok(method, '/v1/test-routing/any', { contains: `"${method}"` })),
  ok('GET', '/v1/test-routing/seen', { contains: 'any' }),
  ok('GET', '/v1/test-routing/first', { contains: 'first' }),
  ok('DELETE', '/v1/test-routing/first', { contains: 'another' }),
  ok('GET', '/v1/test-routing/optional', { contains: '"params":{}' }),
  ok('GET', '/v1/test-routing/optional/7', { contains: '"id":"7"' }),
  ok('GET', '/v2/test-routing/versioned', { contains: '"version":2' }),
  missing('/v1/test-routing/versioned'),
  {
    title: 'a method that a version does not have',
    path: '/v2/test-routing/versioned',
    method: 'POST',
    status: 404,
    meant: {
      difference: 'unknown routes',
      status: 405,
      body: expect.objectContaining({ message: 'POST is not supported here; use GET, HEAD, OPTIONS.' }) as object,
    },
  },
  ok('GET', '/v1/test-routing/replaced', { contains: '"version":1' }),
  ok('GET', '/v2/test-routing/replaced', { contains: '"version":"2 or 3"' }),
  ok('POST', '/v1/test-routing-purchases', { contains: 'order', status: 201 }),
  ok('POST', '/v2/test-routing-items', { contains: 'item', status: 201 }),
  ok('GET', '/test-routing-neutral', { contains: 'neutral' }),
  missing('/v1/test-routing-neutral'),
];
