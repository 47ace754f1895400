import { Body, Controller, Get, Post, Sse, type Type, Version, VERSION_NEUTRAL, VersioningType } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import {
  ApiCreatedResponse,
  ApiOkResponse,
  ApiOperation,
  ApiProduces,
  ApiProperty,
  ApiSchema,
  type OpenAPIObject,
} from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { defineError, FailsWith } from '#errors';
import { IdempotencyKey, Idempotent } from '#resources';
import { OperationRegistry } from '../operation-registry.js';
import { Public, RequireScopes } from '../access.decorators.js';
import { Clock } from '#runtime';
import { Application, Config } from '#settings';
import { OpenApiDocument, Tag } from './openapi-document.js';
import { responseHeaders } from './response-headers.js';

const APPLICATION: Application = {
  product: { name: 'toys', command: 'toys', apiKeyPrefix: 'toys_' },
  info: { title: 'Toy Shop', version: '2.3.4', description: 'Toys.' },
  tags: [{ name: 'Later', description: 'Nothing yet.' }],
  headerExamples: { Location: 'https://toys.example/v1/toys/1' },
  release: '1.0.0',
  readGuide: () => '',
  defaultScopes: ['toys:read'],
  migrations: [],
  typeorm: {},
};
const PROVIDERS = [
  OpenApiDocument,
  OperationRegistry,
  Clock,
  { provide: Config, useValue: { product: APPLICATION.product } },
];

function describeControllers(...controllers: Type[]): Promise<OpenAPIObject> {
  return describeApplication(APPLICATION, ...controllers);
}

async function describeApplication(application: Application, ...controllers: Type[]): Promise<OpenAPIObject> {
  const providers = [...PROVIDERS, { provide: Application, useValue: application }];
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
  test('has the title, version, tags, scopes and examples that the application gives it', async () => {
    const createGame = [Post(), ApiCreatedResponse({ headers: responseHeaders('Location') })];
    const games = controllerOf('games', { createGame }, Tag('Games', 'Games to play.'));
    const document = await describeControllers(ToysController, games);
    expect(document.info).toEqual(APPLICATION.info);
    expect(document.tags).toEqual([{ name: 'Games', description: 'Games to play.' }, ...APPLICATION.tags]);
    expect(document.paths['/games']?.post?.tags).toEqual(['Games']);
    expect(document.components).toMatchObject({
      headers: { Location: { example: 'https://toys.example/v1/toys/1' } },
      securitySchemes: { bearerAuth: { description: expect.stringContaining('such as `toys:read`;') as string } },
    });
  });

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
      [Defaults, { changed: 50, stock: 50, id: 7, tags: ['new'], byHandler: 1 }],
      [Later, { changed: 60, stock: 50, id: 7, tags: ['new'], byHandler: 1 }],
      [Made as Type, {}],
    ])('is the initial value that its class gives it: %p', async (type, expected) => {
      expect(await defaultsOf(type)).toEqual(expected);
    });

    test('may be null beside limits', async () => {
      class Unlimited {
        @ApiProperty({ ...optional, minimum: 1, nullable: true }) limit: number | null = null;
      }
      expect(await defaultsOf(Unlimited)).toEqual({ limit: null });
    });

    test.each([0, 51])('stops the start beyond the limits of the member: %i', async (initial) => {
      class Limited {
        @ApiProperty({ ...optional, minimum: 1, maximum: 50 }) limit = initial;
      }
      await expect(defaultsOf(Limited)).rejects.toThrow(`Limited.limit starts as ${initial}, beyond its limits.`);
    });
  });

  test('refuses an operationId that another handler has, naming both', async () => {
    const games = controllerOf('games', { listGames: [Get(), ApiOperation({ operationId: 'list' })] });
    await expect(describeControllers(ToysController, games)).rejects.toThrow(
      "ToysController.list and GamesController.listGames would both be the operation 'list'",
    );
  });

  test('refuses two controllers with the same name and handler', async () => {
    const another = controllerOf('toys/more', { list: [Get()] });
    await expect(describeControllers(ToysController, another)).rejects.toThrow(
      "ToysController.list and ToysController.list would both be the operation 'ToysController_list'",
    );
  });

  describe('two classes of one name', () => {
    class Line {
      @ApiProperty() sku: string;
    }
    const Other = (() => {
      class Line {
        @ApiProperty() text: string;
        @ApiProperty() author: string;
      }
      return Line;
    })();
    const Same = (() => {
      class Line {
        @ApiProperty() sku: string;
      }
      return Line;
    })();
    const Named = (() => {
      @ApiSchema({ name: 'Remark' })
      class Line {
        @ApiProperty() text: string;
      }
      return Line;
    })();

    /** One operation answers with the first class, another takes the second within its body. */
    function describeBoth(first: Type, second: Type): Promise<OpenAPIObject> {
      class Note {
        @ApiProperty({ type: () => [second] }) lines: object[];
      }
      @Controller('games')
      @RequireScopes()
      class GamesController {
        @Get()
        @ApiOkResponse({ type: first })
        find(): void {}

        @Post()
        createNote(@Body() _: Note): void {}
      }
      return describeControllers(GamesController);
    }

    test('with different members are refused, with the members of both and the remedy', async () => {
      await expect(describeBoth(Line, Other)).rejects.toThrow(
        'The document can describe one class Line only, and there are Line { sku } and Line { text, author }. ' +
          "Name one of them: @ApiSchema({ name: 'AnotherLine' }).",
      );
    });

    test('are one schema if they are equal, and two if one has another name', async () => {
      expect(Object.keys((await describeBoth(Line, Same)).components?.schemas ?? {}).sort()).toEqual([
        'Error',
        'Line',
        'Note',
      ]);
      const named = await describeBoth(Line, Named);
      expect(named.components?.schemas).toMatchObject({
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

  test('refuses a handler that is public and idempotent', async () => {
    @Controller('games')
    class GamesController {
      @Post()
      @Public()
      createGame(@Idempotent() key: IdempotencyKey | undefined): unknown {
        return key;
      }
    }
    await expect(describeControllers(GamesController)).rejects.toThrow(
      'GamesController.createGame cannot be @Public() and @Idempotent()',
    );
  });

  test('has the error that a handler declares, not a different one of its status', async () => {
    const closed = defineError('toys_closed', 403, 'Closed.');
    const { paths } = await describeControllers(controllerOf('closed', { buy: [Post(), FailsWith(closed)] }));
    expect(paths['/closed']?.post?.responses['403']).toMatchObject({ description: '`toys_closed`: Closed.' });
  });

  test('has the errors of all decorators of a handler', async () => {
    const [broken, lost] = [defineError('toys_broken', 409, 'Broken.'), defineError('toys_lost', 410, 'Lost.')];
    const handlers = { buy: [Post(), FailsWith(lost), FailsWith(broken)], look: [Get()] };
    const { paths } = await describeControllers(controllerOf('several', handlers));
    const of = (method: 'get' | 'post'): string[] => Object.keys(paths['/several']?.[method]?.responses ?? {});
    expect(of('post')).toEqual(expect.arrayContaining(['409', '410']));
    expect(of('get')).not.toContain('409');
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
