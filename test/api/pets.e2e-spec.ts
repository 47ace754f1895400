import fc from 'fast-check';
import { INT64_MAX, INT64_MIN } from '#json';
import { createTestApp, type TestApp } from '../support/app.js';
import type { HttpAnswer } from '../support/http-client.js';

/* What needs a catalogue of its own, or many requests. The tables of `contract/` have the other promises. */

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const nextOf = ({ headers }: HttpAnswer): string | undefined =>
  /^<http:\/\/localhost:3000(\/v1\/pets\?[^>]*)>; rel="next"$/.exec((headers.link as string | undefined) ?? '')?.[1];

const idsOf = (answer: HttpAnswer): (number | bigint)[] => (answer.json as { id: number }[]).map(({ id }) => id);

/** All pages, following Link. */
async function walk(limit: number): Promise<HttpAnswer[]> {
  const pages: HttpAnswer[] = [];
  for (let path: string | undefined = `/v1/pets?limit=${limit}`; path !== undefined;) {
    const page = await app.client.get(path);
    pages.push(page);
    path = nextOf(page);
  }
  return pages;
}

async function fill(count: number): Promise<void> {
  await app.sql('DELETE FROM pet');
  await app.sql(`INSERT INTO pet (name, category_id) SELECT 'Pet ' || n, n FROM generate_series(1, $1::int) n`, [
    count,
  ]);
}

describe('pages', () => {
  // 25 and 50: the last page is exactly full.
  test.each([1, 7, 25, 50, 100])('of limit=%i, followed by Link, are the whole list', async (limit) => {
    await fill(50);
    const all = idsOf(await app.client.get('/v1/pets?limit=100'));
    const pages = await walk(limit);
    expect(pages.flatMap(idsOf)).toEqual(all);
    expect(pages).toHaveLength(Math.ceil(50 / limit));
  });

  test('miss and repeat nothing when pets are added and removed between them', async () => {
    await fill(10);
    const first = await app.client.get('/v1/pets?limit=5');
    await app.sql('DELETE FROM pet WHERE id = $1', [idsOf(first)[4]]);
    const added = await app.client.post('/v1/pets', { name: 'Late', categoryId: 1 });
    const second = await app.client.get(nextOf(first) ?? '');
    const third = await app.client.get(nextOf(second) ?? '');
    expect([...idsOf(first), ...idsOf(second), ...idsOf(third)]).toHaveLength(11);
    expect(idsOf(third)).toEqual([added.json.id]);
  });

  test('have another ETag after a change', async () => {
    await fill(3);
    const { etag } = (await app.client.get('/v1/pets')).headers;
    await app.sql(`UPDATE pet SET name = 'Changed'`);
    const changed = await app.client.get('/v1/pets', { headers: { 'if-none-match': etag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.etag).not.toBe(etag);
  });

  test('400 invalid_parameter lists at most ten unknown parameters', async () => {
    const names = Array.from({ length: 800 }, (_, index) => `x${index}=1`).join('&');
    const { message } = (await app.client.get(`/v1/pets?${names}`)).json as { message: string };
    expect(message.match(/unknown query parameter/g)).toHaveLength(10);
  });
});

test.each(['Rex', ' Rex ', '🐕', '\n.', '', ' \t\u00a0', 'a\0b', '\0', '🐕'.repeat(256)])(
  'the published schema takes the name %j exactly if the service does',
  async (name) => {
    const { json: document } = await app.client.get('/openapi.json');
    const schema = document.components.schemas.NewPet.properties.name as { pattern: string; maxLength: number };
    const isDescribed = new RegExp(schema.pattern, 'u').test(name) && [...name].length <= Number(schema.maxLength);
    const { status } = await app.client.post('/v1/pets', { name, categoryId: 1 });
    expect(status).toBe(isDescribed ? 201 : 400);
  },
);

test('int64 is exact as id: path, response, list and cursor', async () => {
  const [most, least] = [INT64_MAX, INT64_MIN];
  const edges = [least, least + 1n, -1n, 0n, 1n, most - 1n, most, 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n];
  const int64 = fc.oneof(fc.bigInt({ min: least, max: most }), fc.constantFrom(...edges));
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(int64, { minLength: 3, maxLength: 5 }), async (ids) => {
      await app.sql('DELETE FROM pet');
      for (const id of ids) {
        const insert = `INSERT INTO pet (id, name, category_id) OVERRIDING SYSTEM VALUE VALUES ($1, 'Rex', 7)`;
        await app.sql(insert, [String(id)]);
        expect((await app.client.get(`/v1/pets/${id}`)).text).toContain(`{"id":${id},`);
      }
      const ascending = [...ids].sort((a, b) => (a < b ? -1 : 1));
      expect((await walk(1)).flatMap(idsOf).map(BigInt)).toEqual(ascending);
    }),
    { numRuns: 25 },
  );
});
