import { Controller, Get, Post, Sse, type Type, Version, VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import {
  ApiBody,
  ApiOkResponse,
  ApiOperation,
  ApiProduces,
  ApiProperty,
  ApiSchema,
  type OpenAPIObject,
} from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { defineError, FailsWith } from '#errors';
import { Idempotent } from '#resources';
import { OperationRegistry } from '../operation-registry.js';
import { Public, RequireScopes } from '../access.decorators.js';
import { Clock } from '#runtime';
import { Application, Config } from '#settings';
import { OpenApiDocument } from './openapi-document.js';
import { responseHeaders } from './response-headers.js';

const APPLICATION: Application = {
  product: { name: 'toys', command: 'toys', apiKeyPrefix: 'toys_' },
  info: { title: 'Toy Shop', version: '2.3.4', description: 'Toys.' },
  tags: [],
  headerExamples: {},
  release: '1.0.0',
  readGuide: () => '',
  defaultScopes: ['toys:read'],
  migrations: [],
  typeorm: {},
};

function describeControllers(...controllers: Type[]): Promise<OpenAPIObject> {
  return describeApplication(APPLICATION, ...controllers);
}

async function describeApplication(application: Application, ...controllers: Type[]): Promise<OpenAPIObject> {
  const config = { provide: Config, useValue: { product: application.product } };
  const providers = [
    OpenApiDocument,
    OperationRegistry,
    Clock,
    config,
    { provide: Application, useValue: application },
  ];
  const app = (
    await Test.createTestingModule({ imports: [DiscoveryModule], controllers, providers }).compile()
  ).createNestApplication();
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  const document = app.get(OpenApiDocument);
  document.describe(app);
  return JSON.parse(document.json) as OpenAPIObject;
}

/** A controller whose handlers do nothing, and need an API key unless a decorator says otherwise. */
function controllerOf(
  path: string | { path: string; version: string[] },
  handlers: Record<string, MethodDecorator[]>,
  ...decorators: ClassDecorator[]
): Type {
  const [, first = '', rest = ''] = /^(\w)(\w*)/.exec(typeof path === 'string' ? path : 'games') ?? [];
  const name = `${first.toUpperCase()}${rest}Controller`;
  const type = { [name]: class {} }[name] as Type;
  for (const [method, ofMethod] of Object.entries(handlers)) {
    const descriptor = { value: { [method]: () => undefined }[method], configurable: true };
    Object.defineProperty(type.prototype, method, descriptor);
    for (const decorate of ofMethod) decorate(type.prototype as object, method, descriptor);
  }
  for (const decorate of [RequireScopes(), Controller(path as string), ...decorators]) decorate(type);
  return type;
}

const ToysController = controllerOf('toys', { list: [Get()] });

describe('OpenApiDocument', () => {
  test('says what the parts add to operations that need an API key, and nothing of parts that are not there', async () => {
    const news = controllerOf('news', { follow: [Sse()], read: [Get('public'), Public()] });
    const info = { ...APPLICATION.info, description: 'Toys.\n\n{parts}\n- **Last**: point.' };
    const document = {
      point: '**Quota**: some.',
      headers: { Quota: { schema: { type: 'string' } } },
      errors: ['rate_limited'],
    };
    const controllers = [ToysController, news];
    const [all, none] = [
      await describeApplication({ ...APPLICATION, info, parts: [{ document }, {}] }, ...controllers),
      await describeApplication({ ...APPLICATION, info, parts: [{}] }, ToysController),
    ];
    expect(all.info.description).toBe('Toys.\n\n- **Quota**: some.\n- **Last**: point.');
    expect(all.paths['/toys']?.get?.responses).toMatchObject({
      200: { headers: responseHeaders('Quota') },
      429: { $ref: '#/components/responses/TooManyRequests' },
    });
    const { Unauthorized, TooManyRequests, InternalError } = all.components?.responses as Record<string, unknown>;
    const { headers } = TooManyRequests as { headers: object };
    expect(Object.keys(headers)).toEqual(['X-Request-Id', 'Cache-Control', 'Retry-After', 'Quota']);
    expect(JSON.stringify(InternalError)).toContain('Quota');
    expect(JSON.stringify([Unauthorized, all.paths['/news/public']])).not.toMatch(/Quota|TooMany/);
    expect(none.info.description).toBe('Toys.\n\n- **Last**: point.');
    expect(JSON.stringify(none)).not.toMatch(/Quota|TooManyRequests|rate_limited/);
    const streams = await describeControllers(news);
    expect(streams.paths['/news']?.get?.responses).toHaveProperty('429');
  });

  describe('the default of a member', () => {
    const optional = { required: false, type: Number };
    class Defaults {
      @ApiProperty({ ...optional, default: 20 }) changed = 50;
      @ApiProperty({ type: Number, default: 20 }) stock = 50;
      @ApiProperty(optional) id = 7n;
      @ApiProperty({ ...optional, type: [String] }) tags = ['new'];
      @ApiProperty({ ...optional, default: 1 }) byHandler?: number;
      @ApiProperty({ ...optional, type: Date }) at = new Date();
      @ApiProperty({ type: Number }) required = 1;
      @ApiProperty(optional) huge = 2n ** 60n;
      @ApiProperty({ ...optional, minimum: 1, nullable: true }) limit: number | null = null;
    }
    class Later extends Defaults {
      override changed = 60;
    }
    class Made {
      @ApiProperty(optional) size = 1;
      constructor(entity: { size: number }) {
        this.size = entity.size;
      }
    }
    const defaultsOf = async (type: Type): Promise<unknown> => {
      const { components } = await describeControllers(
        controllerOf('toys', { list: [Get(), ApiOkResponse({ type })] }),
      );
      const { properties } = components?.schemas?.[type.name] as {
        properties: Record<string, Record<string, unknown>>;
      };
      const all = Object.entries(properties).map(([name, { default: plain, allOf }]) => [
        name,
        plain ?? (allOf as { default: unknown }[] | undefined)?.[0]?.default,
      ]);
      return Object.fromEntries(all) as unknown;
    };

    test.each<[Type, object]>([
      [Defaults, { changed: 50, stock: 50, id: 7, tags: ['new'], byHandler: 1, limit: null }],
      [Later, { changed: 60, stock: 50, id: 7, tags: ['new'], byHandler: 1, limit: null }],
      [Made as Type, {}],
    ])('is the initial value that its class gives it: %p', async (type, expected) => {
      expect(await defaultsOf(type)).toEqual(expected);
    });

    test.each([0, 51])('stops the start beyond the limits of the member: %i', async (initial) => {
      class Limited {
        @ApiProperty({ ...optional, minimum: 1, maximum: 50 }) limit = initial;
      }
      await expect(defaultsOf(Limited)).rejects.toThrow(`Limited.limit starts as ${initial}, beyond its limits.`);
    });
  });

  test.each<[string, Type[], sentence: string]>([
    [
      'an operationId that another handler has, naming both',
      [ToysController, controllerOf('games', { listGames: [Get(), ApiOperation({ operationId: 'list' })] })],
      "ToysController.list and GamesController.listGames would both be the operation 'list'",
    ],
    [
      'two controllers with the same name and handler',
      [ToysController, controllerOf('toys/more', { list: [Get()] })],
      "ToysController.list and ToysController.list would both be the operation 'ToysController_list'",
    ],
    [
      'a handler that is public and idempotent',
      [controllerOf('games', { create: [Post(), Public(), (type, name) => Idempotent()(type, name, 0)] })],
      'GamesController.create cannot be @Public() and @Idempotent()',
    ],
  ])('refuses %s', async (_, controllers, sentence) => {
    await expect(describeControllers(...controllers)).rejects.toThrow(sentence);
  });

  describe('two classes of one name', () => {
    const lineOf = (...members: string[]): Type => {
      class Line {}
      for (const name of members) ApiProperty({ type: String })(Line.prototype, name);
      return Line;
    };
    const [line, named] = [lineOf('sku'), lineOf('text')];
    ApiSchema({ name: 'Remark' })(named);

    /** One operation answers with the first class, another takes the second within its body. */
    function describeBoth(first: Type, second: Type): Promise<OpenAPIObject> {
      class Note {
        @ApiProperty({ type: () => [second] }) lines: object[];
      }
      const find = [Get(), ApiOkResponse({ type: first })];
      return describeControllers(controllerOf('games', { find, createNote: [Post(), ApiBody({ type: Note })] }));
    }

    test('with different members are refused, with the members of both and the remedy', async () => {
      await expect(describeBoth(line, lineOf('text', 'author'))).rejects.toThrow(
        'The document can describe one class Line only, and there are Line { sku } and Line { text, author }. ' +
          "Name one of them: @ApiSchema({ name: 'AnotherLine' }).",
      );
    });

    test('are one schema if they are equal, and two if one has another name', async () => {
      const { components } = await describeBoth(line, lineOf('sku'));
      expect(Object.keys(components?.schemas ?? {}).sort()).toEqual(['Error', 'Line', 'Note']);
      expect((await describeBoth(line, named)).components?.schemas).toMatchObject({
        Line: { properties: { sku: {} } },
        Remark: { properties: { text: {} } },
      });
    });
  });

  test('has an operation for each version of a handler, outside the base URL', async () => {
    const handlers = {
      find: [Get()],
      findNew: [Get('new'), Version('3')],
      findNeutral: [Get('neutral'), Version(VERSION_NEUTRAL)],
    };
    const { paths } = await describeControllers(controllerOf({ path: 'games', version: ['1', '2'] }, handlers));
    const servers = [{ url: '/', description: 'This service' }];
    const found = Object.entries(paths).map(([path, item]) => [path, item.get?.operationId, item.servers]);
    expect(found).toEqual([
      ['/games', 'find', undefined],
      ['/v2/games', 'find_2', servers],
      ['/v3/games/new', 'findNew', servers],
    ]);
  });

  test('has the errors of all decorators of a handler, not different ones of their statuses, and at no other', async () => {
    const [closed, lost] = [defineError('toys_closed', 403, 'Closed.'), defineError('toys_lost', 410, 'Lost.')];
    const handlers = { buy: [Post(), FailsWith(lost), FailsWith(closed)], look: [Get()] };
    const { post, get } = (await describeControllers(controllerOf('closed', handlers))).paths['/closed'] ?? {};
    expect(post?.responses).toMatchObject({ 403: { description: '`toys_closed`: Closed.' }, 410: {} });
    expect(get?.responses).not.toHaveProperty('410');
  });

  test('names the media type that is sent, and 304 only for JSON', async () => {
    const handlers = {
      text: [Get('text'), ApiOkResponse({ type: String })],
      bytes: [Get('bytes'), ApiOkResponse({ type: Buffer })],
      rows: [Get('rows'), ApiProduces('text/csv'), ApiOkResponse({ type: String })],
      toys: [Get('toys'), ApiOkResponse({ type: [String] })],
      follow: [Sse('events'), ApiOkResponse({ type: Object })],
    };
    const { paths } = await describeControllers(controllerOf('games', handlers));
    const found = Object.entries(paths).map(([path, { get }]) => {
      const responses = get?.responses as Record<string, { content: object; headers: object }>;
      const { content, headers } = responses[200] ?? { content: {}, headers: {} };
      return [path, Object.keys(content), '304' in responses, 'ETag' in headers];
    });
    expect(found).toEqual([
      ['/games/text', ['text/plain'], false, false],
      ['/games/bytes', ['application/octet-stream'], false, false],
      ['/games/rows', ['text/csv'], false, false],
      ['/games/toys', ['application/json'], true, true],
      ['/games/events', ['text/event-stream'], false, false],
    ]);
  });
});
