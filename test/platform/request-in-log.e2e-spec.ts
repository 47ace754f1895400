import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Logger,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestModule,
  Param,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import { APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Observable } from 'rxjs';
import { AppModule } from '../../src/app.module.js';
import { PetsModule } from '../../src/pets/pets.module.js';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { PassesRequestToLog } from '../../src/platform/server/requests/request-context.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* Lines of Nest's Logger that name the request that is being served. */

const logger = new Logger('Orders');

@Injectable()
class OrdersService {
  async find(id: string): Promise<string> {
    await sleep(5);
    logger.log({ found: id });
    await new Promise<void>((resolve) => setTimeout(resolve, 5));
    logger.error(`failed ${id}`, new TypeError('wrong'));
    return id;
  }
}

@Controller('test-logged-orders')
class TestOrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Get(':id')
  @Public()
  @UseGuards({
    canActivate: (execution) => {
      logger.debug(`guard ${execution.switchToHttp().getRequest<{ url: string }>().url}`);
      return true;
    },
  })
  findOrder(@Param('id') id: string): Promise<string> {
    return this.orders.find(id);
  }
}

@Module({ controllers: [TestOrdersController], providers: [OrdersService] })
class OrdersModule {}

@PassesRequestToLog()
@Controller('test-quiet-orders')
class TestQuietController {
  @Get()
  @Public()
  findQuietOrder(): string {
    logger.log('quiet');
    return 'quiet';
  }
}

@Module({ controllers: [TestQuietController] })
class QuietModule {}

@Module({})
class MiddlewareModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer
      .apply((_request: unknown, _response: unknown, next: () => void) => {
        logger.log('middleware');
        next();
      })
      .forRoutes('test-quiet-orders');
  }
}

@Injectable()
class LoggingInterceptor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    logger.log('interceptor');
    return next.handle();
  }
}

@Module({ providers: [{ provide: APP_INTERCEPTOR, useClass: LoggingInterceptor }] })
class InterceptorModule {}

@Injectable({ scope: Scope.REQUEST })
class LoggingGuard implements CanActivate {
  canActivate(): boolean {
    logger.log('scoped guard');
    return true;
  }
}

@Module({ providers: [{ provide: APP_GUARD, useClass: LoggingGuard }] })
class ScopedGuardModule {}

interface Line {
  readonly msg: string;
  readonly context?: string;
  readonly requestId?: string;
  readonly operation?: string;
  readonly error?: { readonly type: string };
}

const traceparentOf = (id: string): string =>
  `00-${Buffer.from(id.padEnd(16, '.')).toString('hex')}-00f067aa0ba902b7-01`;

const linesOf = (app: TestApp): Line[] => app.log.lines.filter(({ context }) => context === 'Orders');

test('each line has the id and the operation of its own request, also with others in flight', async () => {
  const app = await createTestApp({ features: [OrdersModule, QuietModule], settings: { LOG_LEVEL: 'debug' } });
  try {
    const ids = Array.from({ length: 20 }, (_, index) => `order-${index}`);
    await Promise.all(
      ids.map((id) =>
        app.client.get(`/v1/test-logged-orders/${id}`, {
          apiKey: null,
          headers: { 'x-request-id': `for-${id}`, traceparent: traceparentOf(id) },
        }),
      ),
    );
    const lines = linesOf(app);
    expect(lines).toHaveLength(60);
    for (const line of lines) {
      const id = /order-\d+/.exec(line.msg)?.[0];
      expect(line).toMatchObject({
        requestId: `for-${id}`,
        operation: 'findOrder',
        traceId: traceparentOf(String(id)).slice(3, 35),
      });
    }
    expect(lines.filter(({ error }) => error?.type === 'TypeError')).toHaveLength(20);
    logger.log('outside');
    expect(linesOf(app).at(-1)).toEqual(expect.not.objectContaining({ requestId: expect.anything() as string }));
  } finally {
    await app.close();
  }
});

test.each([
  ['middleware', MiddlewareModule],
  ['interceptor', InterceptorModule],
  ['scoped guard', ScopedGuardModule],
] as const)('a line of a module that has no controller names its request: %s', async (msg, module) => {
  const app = await createTestApp({ features: [QuietModule, module] });
  try {
    await app.client.get('/v1/test-quiet-orders', { apiKey: null, headers: { 'x-request-id': 'of-a-module' } });
    expect(linesOf(app).find((line) => line.msg === msg)?.requestId).toBe('of-a-module');
  } finally {
    await app.close();
  }
});

test('an application whose controllers pass it themselves has no AsyncLocalStorage', async () => {
  // This holds for the service's own controllers; with a team's feature the application may have AsyncLocalStorage.
  const features = Reflect.getMetadata(MODULE_METADATA.IMPORTS, AppModule) as unknown[];
  const expected = features.every((feature) => feature === PetsModule) ? undefined : (expect.any(String) as string);
  const app = await createTestApp({ features: [QuietModule] });
  try {
    await app.client.get('/v1/test-quiet-orders', { apiKey: null });
    expect(linesOf(app).map(({ msg, requestId }) => [msg, requestId])).toEqual([['quiet', expected]]);
  } finally {
    await app.close();
  }
});
