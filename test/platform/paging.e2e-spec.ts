import { Get, Module, Query } from '@nestjs/common';
import { ApiOkResponse } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import { IsArray, IsDate, IsOptional } from 'class-validator';
import { Int64Parameter } from '#input';
import { ArraySchema, CursorParameter, Keyset, LimitParameter, type Page, Paged } from '#resources';
import { Handlers } from '../ordinary-nest/handlers.js';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* The filters of a paged list of a module, its limit, and what the document says of it. */

interface Keeper {
  readonly id: bigint;
  readonly fullName: string;
}

const KEEPERS: readonly Keeper[] = ['Zoe', 'Ann', 'Bob', 'Özil', 'Zoe', 'Ann', 'Zoe'].map((fullName, index) => ({
  id: 9007199254740990n + BigInt(index * 7),
  fullName,
}));

const ORDER = new Keyset('id');

class ListQuery {
  @LimitParameter('Maximum number.', 50)
  limit = 5;

  @Int64Parameter({ description: 'The smallest id.', required: false })
  from?: bigint;

  @IsOptional()
  @IsDate()
  @Type(() => Date)
  at?: Date;

  @IsOptional()
  @IsArray()
  @Transform(({ value }: { value: unknown }) => (value === undefined ? undefined : [value].flat()))
  name?: string[];

  @CursorParameter('Start of the page.')
  cursor?: string;
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

class TestKept {
  @Int64Parameter({ description: 'Its id.' })
  id: bigint;
}

@ArraySchema(TestKept, 'A page.', 9)
class TestKepts {}

const TOTAL = { 'X-Total-Count': { description: 'All of them.' } };

PAGED.get('above', () => [], {}, { decorators: [Paged(TestKepts, 'A page.'), ApiOkResponse({ headers: TOTAL })] });
PAGED.get('below', () => [], {}, { decorators: [ApiOkResponse({ headers: TOTAL }), Paged(TestKepts, 'A page.')] });

@Module({ controllers: [PAGED.controller] })
class KeepersModule {}

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ features: [KeepersModule] });
});
afterAll(() => app.close());

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
  const { paths } = (await app.client.get('/openapi.json')).json as { paths: Record<string, { get: object }> };
  expect(paths['/test-keepers']?.get).toMatchObject({
    parameters: expect.arrayContaining([
      expect.objectContaining({
        name: 'limit',
        schema: expect.objectContaining({ default: 5, maximum: 50 }) as object,
      }),
    ]) as object,
  });
  expect(() => LimitParameter('Maximum number.', 101)).toThrow('A page has at most 100 items, not 101.');
});

test.each(['above', 'below'])('@ApiOkResponse({ headers }) %s @Paged adds header fields', async (place) => {
  const { paths } = (await app.client.get('/openapi.json')).json as { paths: Record<string, { get: object }> };
  expect(paths[`/test-keepers/${place}`]?.get).toMatchObject({
    responses: {
      200: {
        description: 'A page.',
        headers: { ...TOTAL, Link: { $ref: '#/components/headers/NextPage' } },
        content: { 'application/json': { schema: { $ref: '#/components/schemas/TestKepts' } } },
      },
    },
  });
});
