import { Controller, Injectable, Logger, Module, type OnModuleInit, SetMetadata, type Type } from '@nestjs/common';
import { ExternalContextCreator, HttpAdapterHost } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, Payload, RpcException, Transport } from '@nestjs/microservices';
import type { Express, Request, Response } from 'express';
import { firstValueFrom } from 'rxjs';
import { Public } from '../../src/platform/auth/public.decorator.js';
import { RequireScopes } from '../../src/platform/auth/require-scopes.decorator.js';
import { ApiError } from '../../src/platform/errors/api-error.js';
import { NOT_FOUND } from '../../src/platform/errors/error-catalogue.js';
import { TextProperty } from '../../src/platform/input/property.decorators.js';
import { createTestApp, type TestApp } from '../support/app.js';

/* Guard, filter and pipe of the platform in Nest's contexts 'rpc' and 'graphql'. */

class Word {
  @TextProperty({ description: 'A word.', minLength: 1, maxLength: 5 })
  text: string;
}

const code = (value: string, status: number): unknown => expect.objectContaining({ code: value, status });

describe('microservices', () => {
  @Controller()
  class TestTalkController {
    @MessagePattern('closed')
    closed(): string {
      return 'closed';
    }

    @Public()
    @MessagePattern('open')
    open(@Payload() word: Word): string {
      if (word.text === 'known') throw new RpcException('No such room.');
      if (word.text === 'bug') throw new Error('secret of the inside');
      return word.text;
    }
  }

  @Module({ controllers: [TestTalkController] })
  class TalkModule {}

  const options = { transport: Transport.TCP as const, options: { host: '127.0.0.1', port: 0 } };

  test('only @Public handlers accept messages, which have no API key; pipe and filter apply to them', async () => {
    const app = await createTestApp({
      features: [TalkModule],
      setUp: (nest) => void nest.connectMicroservice(options, { inheritAppConfig: true }),
    });
    const [microservice] = app.nest.getMicroservices();
    await app.nest.startAllMicroservices();
    const { port } = (microservice?.unwrap() as { address(): { port: number } }).address();
    const client = ClientProxyFactory.create({ ...options, options: { host: '127.0.0.1', port } });
    const send = (pattern: string, text: string): Promise<unknown> => firstValueFrom(client.send(pattern, { text }));
    try {
      await expect(send('closed', 'word')).rejects.toEqual(code('missing_api_key', 401));
      expect(await send('open', 'word')).toBe('word');
      await expect(send('open', 'too long')).rejects.toEqual(code('validation_failed', 400));
      await expect(send('open', 'known')).rejects.toMatchObject({ code: 'bad_request', message: 'No such room.' });
      const bug = await send('open', 'bug').catch((error: unknown) => error);
      expect(bug).toEqual(code('internal_error', 500));
      expect(JSON.stringify(bug)).not.toContain('secret of the inside');
      expect((await app.client.get('/v1/pets', { apiKey: null })).status).toBe(401);
    } finally {
      await client.close();
      await app.close();
    }
  });

  test('the start fails for a microservice without the guards', async () => {
    await expect(
      createTestApp({ features: [TalkModule], setUp: (nest) => void nest.connectMicroservice(options) }),
    ).rejects.toThrow('A microservice must take over the guards: connect it in setUp of startService, as');
  });
});

/*
 * No GraphQL server is installed. This substitute behaves like GraphQLModule of @nestjs/graphql with Apollo: it provides its
 * options, answers its path after Nest's router, uses `request.body` unchanged, and calls resolvers in the context 'graphql'.
 */
describe('GraphQL', () => {
  const Query = (): MethodDecorator => SetMetadata('graphql:resolver_type', 'Query');

  const resolverLog = new Logger('ClosedResolver');

  @Injectable()
  class ClosedResolver {
    @Query()
    word(): string {
      return 'word';
    }

    @Query()
    async logged(): Promise<string> {
      await Promise.resolve();
      resolverLog.log('resolved');
      return 'logged';
    }

    @Query()
    @RequireScopes('words:write')
    write(): string {
      return 'written';
    }

    @Query()
    missing(): never {
      throw new ApiError(NOT_FOUND, 'No such word.');
    }

    @Query()
    bug(): never {
      throw new Error('secret of the inside');
    }
  }

  @Injectable()
  class OpenResolver {
    @Query()
    @Public()
    open(): string {
      return 'open';
    }
  }

  function moduleOf(resolvers: Type[]): Type {
    @Module({ providers: [{ provide: 'GqlModuleOptions', useValue: { path: '/graphql' } }, ...resolvers] })
    class GraphqlModule implements OnModuleInit {
      constructor(
        private readonly adapterHost: HttpAdapterHost,
        private readonly creator: ExternalContextCreator,
      ) {}

      onModuleInit(): void {
        const fields = new Map(
          resolvers.flatMap((resolver) => {
            const instance = new resolver() as Record<string, () => unknown>;
            return Object.getOwnPropertyNames(resolver.prototype).map((name) => [
              name,
              this.creator.create(instance, instance[name] as () => unknown, name, ...NONE, 'graphql'),
            ]);
          }) as [string, (...parameters: unknown[]) => Promise<unknown>][],
        );
        this.adapterHost.httpAdapter.getInstance<Express>().use('/graphql', (req: Request, res: Response) => {
          void answer(req, res, fields);
        });
      }
    }
    return GraphqlModule;
  }
  const NONE = [undefined, undefined, undefined, undefined, undefined] as const;

  async function answer(
    req: Request,
    res: Response,
    fields: Map<string, (...parameters: unknown[]) => Promise<unknown>>,
  ): Promise<void> {
    try {
      const field = req.method === 'GET' ? (req.query['query'] as string) : (req.body as { query: string }).query;
      res.json({ data: await fields.get(field)?.(undefined, {}, { req }, {}) });
    } catch (error) {
      const { message, extensions } = error as { message: string; extensions: { http: { status: number } } };
      res.status(extensions.http.status).json({ errors: [{ message, extensions }] });
    }
  }

  async function ask(app: TestApp, field: string, apiKey?: string | null): Promise<{ status: number; text: string }> {
    return app.client.post(
      '/graphql',
      { query: field },
      { ...(apiKey === undefined ? {} : { apiKey }), expects500: true },
    );
  }

  describe('without a public resolver', () => {
    let app: TestApp;
    beforeAll(async () => (app = await createTestApp({ features: [moduleOf([ClosedResolver])] })));
    afterAll(() => app.close());

    test('every request to its path needs a key', async () => {
      for (const field of ['word', '__schema']) {
        const answered = await app.client.post('/graphql', { query: field }, { apiKey: null });
        expect([answered.status, answered.json]).toEqual([401, code('missing_api_key', 401)]);
        expect(answered.headers['www-authenticate']).toBe('Bearer realm="petstore"');
      }
      expect((await app.client.get('/graphql?query=word', { apiKey: null })).status).toBe(401);
      expect((await app.client.get('/health/live')).status).toBe(200);
    });

    test('a log line of a resolver has the id of its request', async () => {
      const call = { headers: { 'x-request-id': 'for-a-resolver' } };
      expect((await app.client.post('/graphql', { query: 'logged' }, call)).status).toBe(200);
      expect(app.log.lines.find(({ context }) => context === 'ClosedResolver')).toMatchObject({
        msg: 'resolved',
        requestId: 'for-a-resolver',
        operation: 'graphql',
      });
    });

    test('guard and filter apply to resolvers', async () => {
      expect(await ask(app, 'word')).toMatchObject({ status: 200, text: '{"data":"word"}' });
      const refused = await ask(app, 'write');
      expect([refused.status, JSON.parse(refused.text)]).toEqual([
        403,
        {
          errors: [
            {
              message: 'The API key lacks the scope words:write.',
              extensions: { code: 'insufficient_scope', status: 403, http: { status: 403 } },
            },
          ],
        },
      ]);
      expect(await ask(app, 'missing')).toMatchObject({
        status: 404,
        text: expect.stringContaining('No such word.') as string,
      });
      const broken = await app.client.post('/graphql', '{"query": ', {
        headers: { 'content-type': 'application/json' },
      });
      expect([broken.status, broken.json]).toEqual([400, code('malformed_json', 400)]);
      const bug = await ask(app, 'bug');
      expect(bug).toMatchObject({ status: 500, text: expect.stringContaining('internal_error') as string });
      expect(bug.text).not.toContain('secret of the inside');
    });
  });

  test('with a public resolver the path needs no key, and the guard checks each resolver', async () => {
    const app = await createTestApp({ features: [moduleOf([ClosedResolver, OpenResolver])] });
    try {
      expect(await ask(app, 'open', null)).toMatchObject({ status: 200, text: '{"data":"open"}' });
      expect(await ask(app, 'word', null)).toMatchObject({
        status: 401,
        text: expect.stringContaining('missing_api_key') as string,
      });
      expect(await ask(app, 'word')).toMatchObject({ status: 200, text: '{"data":"word"}' });
    } finally {
      await app.close();
    }
  });
});
