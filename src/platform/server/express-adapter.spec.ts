import { Controller, Get, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Request, Response } from 'express';
import { readConfig } from '../../config.js';
import { ErrorFilter } from '../errors/error.filter.js';
import { PlatformExpressAdapter } from './express-adapter.js';

@Controller()
class AnswersController {
  @Get('json')
  json(): unknown {
    return { name: 'Rex' };
  }

  @Get('nothing')
  nothing(): void {}
}

async function startApp(
  prepare: (adapter: PlatformExpressAdapter) => void = () => undefined,
): Promise<INestApplication> {
  const config = readConfig({ PORT: '0', HOST: '127.0.0.1', SHUTDOWN_LINGER_MS: '0' });
  const adapter = new PlatformExpressAdapter(config);
  prepare(adapter);
  const module = await Test.createTestingModule({
    controllers: [AnswersController],
    providers: [ErrorFilter],
  }).compile();
  const app = module.createNestApplication(adapter, { bodyParser: false, logger: false });
  app.useGlobalFilters(app.get(ErrorFilter));
  await app.listen(0, '127.0.0.1');
  return app;
}

async function get(app: INestApplication, path: string): Promise<globalThis.Response> {
  return fetch(`${await app.getUrl()}${path}`);
}

describe("Nest's hooks", () => {
  let app: INestApplication | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  /** Sets both hooks, which append what they see to `seen`. */
  function hooks(seen: string[]): (adapter: PlatformExpressAdapter) => void {
    return (adapter) => {
      adapter.setOnRequestHook((request: Request, response: Response, done: () => void) => {
        seen.push(`request ${request.url} ${String(request.route)}`);
        response.setHeader('X-Hook', 'called');
        done();
      });
      adapter.setOnResponseHook((request: Request, response: Response) => {
        seen.push(`response ${request.url} ${response.statusCode}`);
      });
    };
  }

  async function expectHooks(seen: string[]): Promise<void> {
    for (const [path, status] of [
      ['/json', 200],
      ['/nothing', 200],
      ['/nowhere', 404],
    ] as const) {
      const answer = await get(app as INestApplication, path);
      expect([answer.status, answer.headers.get('x-hook')]).toEqual([status, 'called']);
      expect(seen.splice(0)).toEqual([`request ${path} undefined`, `response ${path} ${status}`]);
    }
  }

  test('set before the application starts are called for every request', async () => {
    const seen: string[] = [];
    app = await startApp(hooks(seen));
    await expectHooks(seen);
  });

  test('set later are called for every request; setting them again replaces them', async () => {
    const seen: string[] = [];
    app = await startApp();
    expect((await get(app, '/json')).headers.get('x-hook')).toBeNull();
    hooks(['set first, then replaced'])(app.getHttpAdapter() as PlatformExpressAdapter);
    hooks(seen)(app.getHttpAdapter() as PlatformExpressAdapter);
    await expectHooks(seen);
  });

  test('run before middleware', async () => {
    const order: string[] = [];
    app = await startApp((adapter) => {
      adapter.use((_request: Request, _response: Response, next: () => void) => {
        order.push('middleware');
        next();
      });
    });

    (app.getHttpAdapter() as PlatformExpressAdapter).setOnRequestHook(
      (_request: Request, _response: Response, done: () => void) => {
        order.push('hook');
        done();
      },
    );
    await get(app, '/json');
    expect(order).toEqual(['hook', 'middleware']);
  });

  test.each<[string, (adapter: PlatformExpressAdapter, seen: string[]) => void, string]>([
    [
      'request',
      (adapter, seen) =>
        adapter.setOnRequestHook((_request: Request, _response: Response, done: () => void) => {
          seen.push('request');
          done();
        }),
      'request',
    ],
    ['response', (adapter, seen) => adapter.setOnResponseHook(() => void seen.push('response')), 'response'],
  ])('work without the other hook: %s', async (_, set, expected) => {
    const seen: string[] = [];
    app = await startApp((adapter) => set(adapter, seen));
    expect((await get(app, '/json')).status).toBe(200);
    expect(seen).toEqual([expected]);
  });

  test('refuse a request with an exception', async () => {
    app = await startApp((adapter) =>
      adapter.setOnRequestHook(() => {
        throw new Error('secret');
      }),
    );
    const answer = await get(app, '/json');
    expect([answer.status, await answer.json()]).toEqual([500, expect.objectContaining({ code: 'internal_error' })]);
  });
});

describe("without Nest's hooks", () => {
  test('requests pass no extra layer of Express', async () => {
    const adapters: PlatformExpressAdapter[] = [];
    const app = await startApp((adapter) => adapters.push(adapter));
    const [adapter] = adapters as [PlatformExpressAdapter];
    const layers = (): number => adapter.getInstance<{ router: { stack: unknown[] } }>().router.stack.length;
    const without = layers();
    adapter.setOnResponseHook(() => undefined);
    adapter.setOnRequestHook((_request: Request, _response: Response, done: () => void) => done());
    expect(layers()).toBe(without + 1);
    await app.close();
  });
});
