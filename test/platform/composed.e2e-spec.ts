import { Body, Controller, HttpCode, Module, Post, Query } from '@nestjs/common';
import { ApiBody, ApiOperation } from '@nestjs/swagger';
import { ApiKeysService } from '#access';
import {
  CursorParameter,
  DEFAULT_PAGE_SIZE,
  Idempotency,
  type IdempotencyKey,
  Idempotent,
  Keyset,
  LimitParameter,
  type Page,
  Paged,
} from '#resources';
import { Int64Property, TextProperty } from '#input';
import { Deprecated, RequireScopes } from '#operations';
import { createTestApp, type TestApp } from '../support/app.js';
import { type HttpAnswer, HttpClient } from '../support/http-client.js';

/* Scopes, rate limit, deprecation, idempotency and paging on one handler: a search that stores a row. */

const ORDER = new Keyset('id');

class Search {
  @TextProperty({ description: 'What the names begin with.', example: 'An', minLength: 1, maxLength: 40 })
  prefix: string;
}

class SearchQuery {
  @LimitParameter('Maximum number of matches.') limit = DEFAULT_PAGE_SIZE;
  @CursorParameter('Start of the page.') cursor?: string;
}

class Match {
  @Int64Property({ description: 'Identifier.', example: 1 }) id: bigint;
  @TextProperty({ description: 'Name.', example: 'Ann', minLength: 1, maxLength: 40 }) name: string;
}

@Controller('test-searches')
class TestSearchesController {
  constructor(private readonly idempotency: Idempotency) {}

  @Post()
  @HttpCode(200)
  @RequireScopes('searches:write')
  @Deprecated({
    since: '2026-11-20T00:00:00Z',
    sunset: '2040-12-05T00:00:00Z',
    successor: '/pets',
    replacement: 'List them instead.',
  })
  @ApiOperation({ summary: 'Search', description: 'Records a search, and answers a page of its matches.' })
  @ApiBody({ type: Search, description: 'The search.' })
  @Paged(Match, 'A page of matches.')
  async recordSearch(
    @Body() search: Search,
    @Query() query: SearchQuery,
    @Idempotent() key: IdempotencyKey | undefined,
  ): Promise<Page<unknown>> {
    const { prefix } = search;
    const after = ORDER.decode(query.cursor, { prefix });
    return this.idempotency.answer(key, { search, query }, async ({ manager }) => {
      await manager.query('INSERT INTO test_search (prefix) VALUES ($1)', [prefix]);
      const rows = await manager.query<{ id: string; name: string }[]>(
        `SELECT id, name FROM test_person WHERE starts_with(name, $1) AND ($2::bigint IS NULL OR id > $2) ORDER BY id LIMIT $3`,
        [prefix, after, query.limit + 1],
      );
      const { items, nextCursor } = ORDER.page(rows, query, { prefix });
      return { items: items.map(({ id, name }) => ({ id: BigInt(id), name })), nextCursor };
    });
  }
}

@Module({ controllers: [TestSearchesController] })
class SearchesModule {}

let app: TestApp;
let client: HttpClient;
beforeAll(async () => {
  app = await createTestApp({ features: [SearchesModule], settings: { RATE_LIMIT_PER_MINUTE: '6' } });
  await app.sql('CREATE TABLE test_search (prefix text)');
  await app.sql('CREATE TABLE test_person (id bigint PRIMARY KEY, name text)');
  await app.sql(`INSERT INTO test_person SELECT 9223372036854775800 + n, 'Ann ' || n FROM generate_series(1, 5) AS n`);
});
beforeEach(async () => (client = await newClient(['searches:write'])));
afterAll(() => app.close());

let count = 0;

/** A client with its own rate limit, 6 requests a minute. */
async function newClient(scopes: string[]): Promise<HttpClient> {
  const { secret } = await app.nest.get(ApiKeysService).create({ client: `searcher-${++count}`, scopes });
  return new HttpClient(app.origin, secret);
}

function search(by: HttpClient, query: string, key?: string, body: object = { prefix: 'Ann' }): Promise<HttpAnswer> {
  return by.post(`/v1/test-searches${query}`, body, { headers: { 'idempotency-key': key } });
}

async function countSearches(): Promise<unknown> {
  return (await app.sql('SELECT count(*)::int FROM test_search'))[0]?.[0];
}

const MARKS = {
  deprecation: expect.stringMatching(/^@\d+$/) as string,
  sunset: expect.stringContaining('2040') as string,
  'ratelimit-policy': '"client";q=6;w=60',
};

test('a page has the header fields of all decorators, and is repeated for its key', async () => {
  const first = await search(client, '?limit=2', 'page-1');
  expect([first.status, first.text]).toEqual([
    200,
    '[{"id":9223372036854775801,"name":"Ann 1"},{"id":9223372036854775802,"name":"Ann 2"}]',
  ]);
  expect(first.headers).toMatchObject({ ...MARKS, ratelimit: '"client";r=5;t=10' });
  const link = String(first.headers['link']);
  expect(link).toContain('rel="successor-version"');
  const [, next = ''] = /<http:\/\/localhost:3000\/v1\/test-searches(\?[^>]+)>; rel="next"/.exec(link) ?? [];

  const searches = await countSearches();
  await app.sql(`DELETE FROM test_person WHERE name = 'Ann 1'`);
  const again = await search(client, '?limit=2', 'page-1');
  expect([again.status, again.text, again.headers['link']]).toEqual([200, first.text, link]);
  expect(again.headers).toMatchObject({ ...MARKS, 'idempotent-replayed': 'true', ratelimit: '"client";r=4;t=20' });
  expect(await countSearches()).toBe(searches);

  // With another page it is another request, so the key is refused.
  expect((await search(client, next, 'page-1')).json).toMatchObject({ code: 'idempotency_key_reused', status: 422 });
  const second = await search(client, next, 'page-2');
  expect((second.json as unknown as Match[]).map(({ name }) => name)).toEqual(['Ann 3', 'Ann 4']);
});

test('requests are refused in this order: key, rate limit, scope, body, key of the request, cursor', async () => {
  const searches = await countSearches();
  const other = await newClient(['pets:read']);
  const { deprecation } = MARKS;
  for (const [answer, code, mark] of [
    [await search(new HttpClient(app.origin), '', 'k'), 'missing_api_key', undefined],
    [await search(other, '', 'k'), 'insufficient_scope', undefined],
    [await search(client, '', 'k', { prefix: 7 }), 'validation_failed', deprecation],
    [await search(client, '?limit=0', 'k'), 'invalid_parameter', deprecation],
    [await search(client, '', ''), 'invalid_idempotency_key', deprecation],
    [await search(client, '?cursor=x', 'k'), 'invalid_cursor', deprecation],
  ] as const) {
    expect([answer.json.code, answer.headers['deprecation']]).toEqual([code, mark]);
  }
  // Nothing is stored for refused requests.
  expect((await search(client, '', 'k')).status).toBe(200);
  expect((await search(client, '', 'k')).headers['idempotent-replayed']).toBe('true');
  expect((await search(client, '', 'k')).json.code).toBe('rate_limited');
  expect(await countSearches()).toBe((searches as number) + 1);
});
