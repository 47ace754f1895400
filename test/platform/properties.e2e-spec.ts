import { applyDecorators, Controller, Get, Module, Post, Query, SetMetadata } from '@nestjs/common';
import {
  ApiConflictResponse,
  ApiDefaultResponse,
  ApiNotFoundResponse,
  ApiOkResponse,
  ApiResponse,
  ApiServiceUnavailableResponse,
} from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import { IsArray, IsDate, IsOptional } from 'class-validator';
import {
  CursorParameter,
  defineError,
  FailsWith,
  Int64Parameter,
  Int64Property,
  Keyset,
  LimitParameter,
  type Page,
  Paged,
  PathId,
  Public,
} from '#platform';
import { ArraySchema } from '#resources';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* Pages, declared responses, and ids in paths, and their document. `input` tests members and parameters. */

class Toy {
  @Int64Property({ description: 'Its id.' }) id: bigint;
}

/** A class that tells @nestjs/swagger its members, as those of createZodDto do. */
class SelfDescribed {
  static _OPENAPI_METADATA_FACTORY(): object {
    return { name: { type: 'string', required: true, maxLength: 9 } };
  }
}

const TOY_NOT_FOUND = defineError('test_toy_not_found', 404, 'No toy has this id.');
const SHOP_NOT_FOUND = defineError('test_shop_not_found', 404, 'No shop has this id.');
const PATH = { description: 'The toy.', example: 7 };

@Public()
abstract class TestListsController {
  @Get('of/:toyId')
  @ApiOkResponse({ type: Toy })
  getOne(@PathId('toyId', TOY_NOT_FOUND, PATH) id: bigint): unknown {
    return { id };
  }
}

@Public()
@Controller('test-lists')
class TestToysController extends TestListsController {
  @Get('in/:shopId/:toyId')
  @FailsWith(TOY_NOT_FOUND)
  getToy(
    @PathId('shopId', SHOP_NOT_FOUND, PATH) _shopId: bigint,
    @PathId('toyId', TOY_NOT_FOUND, PATH) _toyId: bigint,
  ): void {}
}

const DECLARED = new Handlers('test-declared');
const declares = (route: MethodDecorator, name: string, ...decorators: MethodDecorator[]): void =>
  DECLARED.add(route, name, () => undefined, { decorators });
declares(
  Get('zod'),
  'getZod',
  ApiNotFoundResponse({ description: 'Nobody has the name.', type: Toy }),
  ApiServiceUnavailableResponse({ type: [String] }),
  // nestjs-zod composes its @ZodResponse so, of a class that describes itself.
  applyDecorators(SetMetadata('serializer', SelfDescribed), ApiResponse({ type: SelfDescribed })),
);
declares(Post('default'), 'addDefault', ApiDefaultResponse({ type: Toy }), ApiConflictResponse());
declares(Get('range'), 'getRange', ApiResponse({ status: '2XX', type: Toy }), ApiDefaultResponse({ type: String }));
declares(Get('declared'), 'getDeclared', ApiOkResponse({ type: Toy }), ApiDefaultResponse({ type: String }));

type Keeper = { id: bigint; fullName: string };

const KEEPERS = ['Zoe', 'Ann', 'Bob', 'Özil', 'Zoe', 'Ann', 'Zoe'].map((fullName, index) => ({
  id: 9007199254740990n + BigInt(index * 7),
  fullName,
}));

const ORDER = new Keyset('id');

class ListQuery {
  @LimitParameter('Maximum number.', 50) limit = 5;
  @Int64Parameter({ description: 'The smallest id.', required: false }) from?: bigint;

  @IsOptional() @IsDate() @Type(() => Date) at?: Date;
  @IsOptional() @IsArray() @Transform(({ value }: { value: unknown }) => value && [value].flat()) name?: string[];
  @CursorParameter('Start of the page.') cursor?: string;
}

const PAGED = new Handlers('test-keepers');
PAGED.add(
  Get(),
  'listKeepers',
  (query: ListQuery): Page<Keeper> => {
    const { from, at, name } = query;
    const after = ORDER.decode(query.cursor, { from, at, name }) ?? 0n;
    const found = KEEPERS.filter((each) => each.id >= (from ?? 0n) && (name?.includes(each.fullName) ?? true));
    const rows = found.filter(({ id }) => id > BigInt(after)).slice(0, query.limit + 1);
    return ORDER.page(rows, query, { from, at, name });
  },
  { parameters: [[Query(), ListQuery]], decorators: [Paged(Object, 'A page of keepers.')] },
);

@ArraySchema(Toy, 'A page.', 9)
class TestKepts {}

const TOTAL = { 'X-Total-Count': { description: 'All of them.' } };

PAGED.get('above', () => [], {}, { decorators: [Paged(TestKepts, 'A page.'), ApiOkResponse({ headers: TOTAL })] });
PAGED.get('below', () => [], {}, { decorators: [ApiOkResponse({ headers: TOTAL }), Paged(TestKepts, 'A page.')] });

@Module({ controllers: [TestToysController, DECLARED.controller, PAGED.controller] })
class ToysModule {}

type Described = { parameters: { name: string; in: string }[]; responses: object };

let app: TestApp;
let document: {
  paths: Record<string, { get: Described; post: Described }>;
  components: { schemas: Record<string, { properties: object }> };
};
beforeAll(async () => {
  app = await createTestApp({ features: [ToysModule] });
  document = (await app.client.get('/openapi.json')).json as typeof document;
});
afterAll(() => app.close());

test.each([
  ['zod', 'get', 200, 'SelfDescribed'],
  ['default', 'post', 201, 'Toy'],
  ['range', 'get', 200, 'Toy'],
  ['declared', 'get', 200, 'Toy'],
] as const)('the document keeps the schema of success: %s', (path, method, status, name) => {
  const { responses } = document.paths[`/test-declared/${path}`]?.[method] as Described;
  const schema = { $ref: `#/components/schemas/${name}` };
  expect(responses).toMatchObject({
    [status]: { headers: { 'X-Request-Id': {} }, content: { 'application/json': { schema } } },
    default: { $ref: '#/components/responses/OtherError' },
  });
  expect(Object.keys(responses).filter((key) => Number(key) < 300)).toEqual([String(status)]);
  expect(document.components.schemas[name]?.properties).toBeDefined();
});

test('@PathId documents its error, once, also at an inherited handler', async () => {
  const of = (path: string): object => document.paths[path]?.get.responses ?? {};
  expect(of('/test-lists/of/{toyId}')).toMatchObject({
    404: { description: '`test_toy_not_found`: No toy has this id.' },
  });
  const { description } = (of('/test-lists/in/{shopId}/{toyId}') as Record<number, { description: string }>)[404] ?? {};
  expect(description?.split('\n')).toEqual([
    'Not Found.',
    '- `test_toy_not_found`: No toy has this id.',
    '- `test_shop_not_found`: No shop has this id.',
  ]);
  expect((await app.client.get('/v1/test-lists/of/x')).json).toMatchObject({ code: 'test_toy_not_found' });
});

test('the type that an operation declares for an error is that of its details', () => {
  type Answer = Record<string, { description: string; content: Record<string, { schema: object; examples: object }> }>;
  const responses = document.paths['/test-declared/zod']?.get.responses as Answer;
  const detailsOf = (details: object): object => ({
    schema: { allOf: [{ $ref: '#/components/schemas/Error' }, { type: 'object', properties: { details } }] },
  });
  expect(responses[404]?.description).toBe('Nobody has the name.');
  expect(responses[404]?.content['application/json']).toMatchObject(detailsOf({ $ref: '#/components/schemas/Toy' }));
  // The platform also returns 503, so its examples stay.
  const texts = detailsOf({ type: 'array', items: { type: 'string' } });
  expect(responses[503]?.content['application/json']).toMatchObject({ ...texts, examples: { unavailable: {} } });
});

/* The filters of a paged list, and its limit. */

const namesOf = ({ json }: HttpAnswer): string[] => (json as unknown as Keeper[]).map(({ fullName }) => fullName);

test('a cursor is accepted only with its own filters, in any order', async () => {
  const from = 'from=9007199254740990';
  const names = 'name=Ann&name=Zoe';
  const at = 'at=2026-02-28T09:30:00%2B01:00';
  const read = (query: string): Promise<HttpAnswer> => app.client.get(`/v1/test-keepers?${query}`);
  const first = await read(`limit=3&${from}&${names}&${at}`);
  expect(namesOf(first)).toEqual(['Zoe', 'Ann', 'Zoe']);
  const cursor = /[?&]cursor=([^&>]+)/.exec(String(first.headers['link']))?.[1];
  const next = await read(`cursor=${cursor}&${names}&at=2026-02-28T08:30:00Z&${from}`);
  expect([namesOf(next), next.headers['link']]).toEqual([['Ann', 'Zoe'], undefined]);
  for (const query of [`${at}&${names}`, `${at}&name=Ann&${from}`, `${names}&${from}&at=2026-02-28T09:30:00Z`]) {
    expect((await read(`cursor=${cursor}&${query}`)).json).toMatchObject({
      code: 'invalid_cursor',
      message: 'cursor was made with other filters; send the same ones as on the first page',
    });
  }
});

test('a list has its own default and largest page, and the document says so', async () => {
  expect(namesOf(await app.client.get('/v1/test-keepers'))).toHaveLength(5);
  expect((await app.client.get('/v1/test-keepers?limit=50')).status).toBe(200);
  expect((await app.client.get('/v1/test-keepers?limit=51')).json['message']).toBe(
    'limit must be an integer between 1 and 50',
  );
  const [limit] = document.paths['/test-keepers']?.get.parameters ?? [];
  expect(limit).toMatchObject({ name: 'limit', schema: { default: 5, maximum: 50 } });
  expect(() => LimitParameter('Maximum number.', 101)).toThrow('A page has at most 100 items, not 101.');
});

test.each(['above', 'below'])('@ApiOkResponse({ headers }) %s @Paged adds header fields', (place) => {
  expect(document.paths[`/test-keepers/${place}`]?.get).toMatchObject({
    responses: {
      200: {
        description: 'A page.',
        headers: { ...TOTAL, Link: { $ref: '#/components/headers/NextPage' } },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/TestKepts' } } },
      },
    },
  });
});
